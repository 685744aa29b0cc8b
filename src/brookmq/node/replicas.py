"""The alarm for a store that does not follow the others: while it does not, one more loss stops everything.

Every few seconds the leader of each stream is asked, some ten small questions. What is there for two looks in a row is
told, one alarm for each server; it is over when a look at all streams finds it so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Final

from brookmq.base.alarms import Alarms
from brookmq.base.ending import end
from brookmq.store.errors import StoreError
from brookmq.store.link import Link
from brookmq.store.replicas import Replica, replicas
from brookmq.store.streams import stream_names

LOOK_S: Final = 3.0
REPLICA_BEHIND: Final = "store_replica_behind"  # alarm, with the server's name behind a slash
NAMED_MAX: Final = 4  # streams in an alarm's text; its details have all of them


class ReplicaWatch:
    """Looks until `end`."""

    def __init__(self, link: Link, alarms: Alarms) -> None:
        self._link = link
        self._judge = ReplicaJudge(alarms)
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def end(self) -> None:
        if self._task is not None:
            await end([self._task])

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            found: dict[str, Sequence[Replica]] = {}
            try:
                for name in await stream_names(self._link):
                    found[name] = await replicas(self._link, name)
            except StoreError:  # an election, or no store at all, which others tell
                self._judge.looked(found, False, time.time())
            else:
                self._judge.looked(found, True, time.time())


class ReplicaJudge:
    """Which alarms follow from what was seen."""

    def __init__(self, alarms: Alarms) -> None:
        self._alarms = alarms
        self._suspects: set[str] = set()  # servers that a look has found not to follow
        self._told: set[str] = set()  # those with an alarm

    def looked(self, found: Mapping[str, Sequence[Replica]], complete: bool, now: float) -> None:
        """Takes the copies of each stream; not ``complete``: not all streams answered."""
        troubles: dict[str, dict[str, str]] = {}  # by server and stream
        for stream, copies in found.items():
            for copy in copies:
                if copy.trouble:
                    troubles.setdefault(copy.server, {})[stream] = copy.trouble
        for server, streams in troubles.items():
            if server in self._suspects:
                self._told.add(server)
                self._alarms.activate(
                    _name(server), {"server": server, "streams": streams}, _text(server, streams), now
                )
        if not complete:
            self._suspects |= troubles.keys()
            return
        self._suspects = set(troubles)
        for server in self._told - troubles.keys():
            self._alarms.deactivate(_name(server), now)
        self._told &= troubles.keys()


def _name(server: str) -> str:
    return f"{REPLICA_BEHIND}/{server}"


def _text(server: str, streams: Mapping[str, str]) -> str:
    named = ", ".join(f"{stream} ({trouble})" for stream, trouble in sorted(streams.items())[:NAMED_MAX])
    more = f" and {len(streams) - NAMED_MAX} more" if len(streams) > NAMED_MAX else ""
    return (
        f"the store {server} does not have the newest of {named}{more}: the loss of another one would stop all writes"
    )
