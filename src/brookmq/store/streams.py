"""Streams of the store: declared, looked at, changed in their limits.

Declaring is idempotent, so that every start does it. Names and subjects are ours alone: MQTT names never stand in them,
since the store closes the connection over a long subject; the pattern below refuses what could have come from a client.
All streams are on disk: those in memory come back empty, and with their sequences at 0, when all servers restart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from brookmq.base.errors import CallerError
from brookmq.store.errors import NAME_IN_USE, Refused, StoreError
from brookmq.store.link import REQUEST_TIME_LIMIT_S, Link

NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,31}")
SUBJECT: Final = re.compile(r"[a-z0-9_]{1,32}(\.([a-z0-9_]{1,32}|\*)){0,7}(\.>)?")
DECLARE_TIME_LIMIT_S: Final = 10.0  # of three servers that have just started, the first answer takes an election

NANOSECONDS: Final = 1_000_000_000
# The appender needs no message ids, but the store insists on a window for them; it costs nothing without ids.
DUPLICATE_WINDOW_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A stream as we want it. No limit is ``None``."""

    name: str
    subjects: tuple[str, ...]
    replicas: int = 1
    max_age_s: float | None = None
    max_bytes: int | None = None
    records_per_subject_max: int | None = None  # the newest stay
    duplicate_window_s: float = DUPLICATE_WINDOW_S
    ageless_mark: str = ""  # a key of metadata: a stream that has it keeps being without ``max_age_s``

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise CallerError(f"{self.name!r} is not a name for a stream")
        for subject in self.subjects:
            if not SUBJECT.fullmatch(subject):
                raise CallerError(f"{subject!r} is not a subject for a stream")

    def configuration(self) -> dict[str, Any]:
        """As the store's API writes it."""
        window_s = self.duplicate_window_s if self.max_age_s is None else min(self.duplicate_window_s, self.max_age_s)
        return {
            "name": self.name,
            "subjects": list(self.subjects),
            "retention": "limits",
            "discard": "old",
            "storage": "file",
            "num_replicas": self.replicas,
            "max_age": 0 if self.max_age_s is None else round(self.max_age_s * NANOSECONDS),
            "max_bytes": -1 if self.max_bytes is None else self.max_bytes,
            "max_msgs_per_subject": -1 if self.records_per_subject_max is None else self.records_per_subject_max,
            "duplicate_window": round(window_s * NANOSECONDS),
            "allow_direct": True,
        }


@dataclass(frozen=True, slots=True)
class StreamState:
    """What is in a stream. An empty one has ``first_sequence == last_sequence + 1``, and 1 and 0 when it is new."""

    first_sequence: int
    last_sequence: int
    records: int
    bytes: int
    leader: str  # the server that leads it; empty on a lone server or during an election
    replicas: int
    max_age_s: float | None
    max_bytes: int | None


async def declare(link: Link, stream: Stream) -> StreamState:
    """Makes the stream, or changes the one that is there to what is wanted."""
    wanted = stream.configuration()
    # A lone server answers at once or was killed meanwhile; then it is asked again soon.
    time_limit_s = DECLARE_TIME_LIMIT_S if stream.replicas > 1 else REQUEST_TIME_LIMIT_S
    try:
        answer = await link.api(f"STREAM.CREATE.{stream.name}", wanted, time_limit_s=time_limit_s)
    except Refused as refusal:
        if refusal.code != NAME_IN_USE:
            raise
        there = await link.api(f"STREAM.INFO.{stream.name}", time_limit_s=time_limit_s)
        if there["config"]["storage"] != wanted["storage"]:
            raise StoreError(f"stream {stream.name} is not kept on disk; and can't be changed to be") from None
        if stream.ageless_mark and stream.ageless_mark in (there["config"].get("metadata") or {}):
            wanted["max_age"] = 0
        if there["config"] | wanted == there["config"]:
            return state_of(there)  # a store that is killed while it writes a change does not know the stream any more
        answer = await link.api(f"STREAM.UPDATE.{stream.name}", there["config"] | wanted, time_limit_s=time_limit_s)
    return state_of(answer)


async def look(link: Link, name: str) -> StreamState:
    """The state of a stream, from its leader."""
    return state_of(await link.api(f"STREAM.INFO.{name}"))


async def stream_names(link: Link) -> list[str]:
    """All streams that there are."""
    names: list[str] = []
    while True:
        answer = await link.api("STREAM.NAMES", {"offset": len(names)})
        page = answer["streams"] or []
        names += page
        if not page or len(names) >= int(answer["total"]):
            return names


async def purge(link: Link, name: str, before: int, subject: str = "") -> int:
    """Removes the records before a sequence, all or those of a subject (which may have wildcards); says how many."""
    query = {"seq": before, "filter": subject} if subject else {"seq": before}
    answer = await link.api(f"STREAM.PURGE.{name}", query, time_limit_s=DECLARE_TIME_LIMIT_S)
    return int(answer["purged"])


async def subjects(link: Link, name: str, pattern: str) -> tuple[set[str], int]:
    """The subjects that have records, and the stream's last sequence when its leader was asked."""
    found: set[str] = set()
    while True:
        answer = await link.api(f"STREAM.INFO.{name}", {"subjects_filter": pattern, "offset": len(found)})
        page = answer["state"].get("subjects") or {}
        found |= page.keys()
        if not page or len(found) >= answer.get("total", 0):
            return found, int(answer["state"]["last_seq"])


async def remove(link: Link, name: str) -> None:
    """Deletes a stream with all that is in it."""
    await link.api(f"STREAM.DELETE.{name}", time_limit_s=DECLARE_TIME_LIMIT_S)


def state_of(answer: dict[str, Any]) -> StreamState:
    """The state in an answer about a stream."""
    config, state = answer["config"], answer["state"]
    last = int(state["last_seq"])
    return StreamState(
        first_sequence=int(state["first_seq"]) if state["messages"] else last + 1,
        last_sequence=last,
        records=int(state["messages"]),
        bytes=int(state["bytes"]),
        leader=(answer.get("cluster") or {}).get("leader", ""),
        replicas=int(config["num_replicas"]),
        max_age_s=config["max_age"] / NANOSECONDS or None,
        max_bytes=config["max_bytes"] if config["max_bytes"] >= 0 else None,
    )
