"""Copies of a stream that do not follow, as its leader sees them.

A leader that was just elected knows nothing of the others' silence: one that it has never heard of is silent since 0 s.
That a copy is some records behind is nothing: appends are acknowledged by two of three, and the third follows. So is a
moment of silence, which a restart makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from brookmq.store.link import Link
from brookmq.store.streams import NANOSECONDS

SILENT_S_MAX: Final = 5.0  # the others answer a heartbeat every second
LAG_RECORDS_MAX: Final = 64  # a log has one record under way


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy. ``silent_s``: since its leader has heard of it."""

    server: str
    current: bool
    offline: bool
    silent_s: float
    lag: int  # records

    @property
    def trouble(self) -> str:
        """Why it does not follow, in a few words; empty: it does."""
        if self.offline:
            return "offline"
        if self.silent_s > SILENT_S_MAX:
            return f"silent for {self.silent_s:.0f} s"
        if not self.current and self.silent_s == 0.0:
            return "not heard of"
        if not self.current and self.lag > LAG_RECORDS_MAX:
            return f"{self.lag} records behind"
        return ""


async def replicas(link: Link, stream: str) -> list[Replica]:
    """The copies beside the leader's; none on a lone server."""
    return replicas_of(await link.api(f"STREAM.INFO.{stream}"))


def replicas_of(answer: dict[str, Any]) -> list[Replica]:
    """The copies in an answer about a stream."""
    found = (answer.get("cluster") or {}).get("replicas") or []
    return [
        Replica(
            server=str(each["name"]),
            current=bool(each.get("current")),
            offline=bool(each.get("offline")),
            silent_s=int(each.get("active", 0)) / NANOSECONDS,
            lag=int(each.get("lag", 0)),
        )
        for each in found
    ]
