"""A connection that one thread uses and another may end.

The pipeline closes actions when a query is to stop, also while one of them writes. Closing a connection under somebody
who uses it is not safe, and waiting for him may take as long as his batch: so the last of the two lets go of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from brookmq.spark.actions.interface import ActionError


class Turns:
    """``let_go`` is called once nobody is inside and everything is to end; more than once is possible."""

    def __init__(self, where: str, let_go: Callable[[], None]) -> None:
        self.closing = threading.Event()
        self._where = where
        self._let_go = let_go
        self._inside = threading.Lock()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """For the time of a ``write``."""
        try:
            with self._inside:
                if self.closing.is_set():
                    raise ActionError(f"{self._where}: the pipeline ends")
                yield
        finally:
            if self.closing.is_set():
                self._try_to_let_go()

    def close(self) -> None:
        """Returns at once; who is inside may look at ``closing``."""
        self.closing.set()
        self._try_to_let_go()

    def _try_to_let_go(self) -> None:
        if self._inside.acquire(blocking=False):
            try:
                self._let_go()
            finally:
                self._inside.release()
