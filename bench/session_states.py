"""Data folders with very many sessions in them, made before a start is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.stage import Stage

SESSIONS_PER_S_MIN: Final = 500.0


def fill_with_sessions(stage: Stage, folder: Path, count: int) -> None:
    """Sessions as clients make them: connected, subscribed, gone; ``bench-session-N`` with one filter each."""
    folder.mkdir()
    with stage.start(folder) as running:
        timeout_s = 60 + count / SESSIONS_PER_S_MIN
        stage.tool(running, "sessions", "-n", count, "--topic", "bench/stored/%i", timeout_s=timeout_s)
