"""A live line while a load runs: redrawn in a terminal, one line a second elsewhere, nothing when not wanted."""

from __future__ import annotations

import sys
import time
from typing import Final

from rich.console import Console
from rich.status import Status

PLAIN_INTERVAL_S: Final = 1.0


class Progress:
    def __init__(self, title: str, *, wanted: bool = True) -> None:
        self._title = title
        self._wanted = wanted
        self._next_at = 0.0
        self._status: Status | None = None
        if wanted and sys.stderr.isatty():
            self._status = Console(stderr=True).status(title)
            self._status.start()

    def show(self, text: str) -> None:
        if self._status is not None:
            self._status.update(f"{self._title}: {text}")
        elif self._wanted and time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + PLAIN_INTERVAL_S
            print(f"{self._title}: {text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
