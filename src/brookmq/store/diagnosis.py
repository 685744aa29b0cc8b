"""What a line of the store's own log means for the operator, in plain words.

nats-server reports troubles of the machine under it (a full disk, a folder without permission, a port in use) as lines
on stderr and then exits, or stays up with streams that take no more writes. The texts are its own and may change with
a version; what is not recognised is passed on word by word, never swallowed.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import NamedTuple

LINE_CHARACTERS_MAX = 300  # of a line that is passed on word by word

# "[4711] 2026/11/15 15:04:00.913991 [ERR] text"; what it says before its logger is up is "nats-server: text".
_LOGGED = re.compile(r"^\[\d+\] \S+ \S+ \[(?P<level>[A-Z]{3})\] (?P<text>.*)$")
_BEFORE_LOGGER = "nats-server: "


class Trouble(Enum):
    """The kinds of trouble that are told apart, because somebody has to do something about them."""

    DISK_FULL = auto()
    UNWRITABLE = auto()
    DISK_FAULT = auto()
    PORT_IN_USE = auto()
    SETTINGS_REFUSED = auto()
    OPEN_FILES = auto()
    OTHER = auto()


class Diagnosis(NamedTuple):
    """A trouble and the sentence for `/readyz` and the alarm."""

    trouble: Trouble
    text: str


class LogLine(NamedTuple):
    """``level`` is one of nats-server's: INF, WRN, ERR, FTL, DBG."""

    level: str
    text: str


_KNOWN: tuple[tuple[str, Trouble, str], ...] = (
    ("no space left on device", Trouble.DISK_FULL, "the disk of the data folder is full"),
    ("disk quota exceeded", Trouble.DISK_FULL, "the disk quota of the data folder is used up"),
    ("file too large", Trouble.DISK_FULL, "the data folder's file size limit is reached"),
    ("file resource limits exceeded", Trouble.DISK_FULL, "the store has used up its limit of disk space"),
    ("insufficient storage resources", Trouble.DISK_FULL, "the store has used up its limit of disk space"),
    ("out of space", Trouble.DISK_FULL, "the disk of the data folder is full"),
    ("read-only file system", Trouble.UNWRITABLE, "the data folder is on a read-only file system"),
    ("permission denied", Trouble.UNWRITABLE, "the data folder is not writable for this user"),
    ("operation not permitted", Trouble.UNWRITABLE, "the data folder is not writable for this user"),
    ("storage directory is not writable", Trouble.UNWRITABLE, "the data folder is not writable for this user"),
    ("input/output error", Trouble.DISK_FAULT, "the disk of the data folder reports errors"),
    ("address already in use", Trouble.PORT_IN_USE, "the store's port is in use"),
    ("too many open files", Trouble.OPEN_FILES, "the store may not open more files (see `ulimit -n`)"),
)
# After these a stream takes no writes until the server is started anew, although the server itself stays up.
_WRITES_ENDED = ("critical write error", "will be disabled")
# A member deletes what its cluster does not know of. It never has to happen: see `belonging`.
_DATA_DELETED = ("detected orphaned stream",)


def parse(line: str) -> LogLine:
    """Level and text of one line; a line without a level (a panic's, or one before the logger is up) is an error."""
    match = _LOGGED.match(line)
    if match is not None:
        return LogLine(match["level"], match["text"])
    return LogLine("ERR" if line.strip() else "INF", line.removeprefix(_BEFORE_LOGGER))


def diagnose(line: str) -> Diagnosis:
    """The trouble that a line speaks of, with the line's own words where they help."""
    text = parse(line).text.strip()[:LINE_CHARACTERS_MAX]
    lower = text.lower()
    for words, trouble, sentence in _KNOWN:
        if words in lower:
            return Diagnosis(trouble, f"{sentence} ({text})")
    if line.startswith(_BEFORE_LOGGER):
        return Diagnosis(Trouble.SETTINGS_REFUSED, f"the store refuses its settings ({text})")
    return Diagnosis(Trouble.OTHER, text)


def ends_writes(line: str) -> bool:
    """Whether the server has just said that a stream, or all of JetStream, takes no more writes."""
    lower = line.lower()
    return any(words in lower for words in _WRITES_ENDED)


def deletes_data(line: str) -> bool:
    """Whether the server has just said that it deletes a stream by itself."""
    lower = line.lower()
    return any(words in lower for words in _DATA_DELETED)
