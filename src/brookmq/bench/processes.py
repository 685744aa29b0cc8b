"""What other processes cost, read from /proc: CPU time and resident memory of a broker with all its children."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat behind the name (which may hold blanks); None when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def family(pids: Iterable[int]) -> set[int]:
    """The processes and everything that descends from them."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))) is not None:
            parents[int(entry.name)] = int(fields[1])
    found = set(pids)
    grown = True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in found} - found
        found |= children
        grown = bool(children)
    return found


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time of the processes and their children, those that ended included."""
    total = 0
    for pid in family(pids):
        if (fields := _stat(pid)) is not None:
            total += sum(int(field) for field in fields[11:15])  # utime, stime, cutime, cstime
    return total / _TICKS_PER_S


def resident_bytes(pids: Iterable[int]) -> int:
    total = 0
    for pid in family(pids):
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total
