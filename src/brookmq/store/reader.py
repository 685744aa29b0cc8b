"""Reading ranges of a stream, from any replica, in batches.

One request brings many records: the store answers it with one message for each and then a status. A replica may be
behind, so "nothing there" is believed only when the stream's leader says so too; what a replica does have is right,
since it was agreed on before it was written.

Records that are gone (retention, purge) are never skipped silently: ``Gap`` is raised, or ``on_gap`` is told and
reading goes on behind them.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from typing import Final

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from brookmq.store.errors import NO_MESSAGE, Ambiguous, Gap, Refused
from brookmq.store.link import API, REQUEST_TIME_LIMIT_S, Link, describe
from brookmq.store.streams import StreamState, look

BATCH_RECORDS_MAX: Final = 256
BATCH_BYTES_MAX: Final = 1024 * 1024  # bounds the memory of a reader; a larger record comes alone
LANES: Final = 4  # requests to a stream at a time; with what each may bring, the memory that reading takes
STALE_PAUSE_S: Final = 0.02

END_OF_BATCH: Final = "204"
NOTHING_THERE: Final = "404"

Record = tuple[int, bytes]  # its sequence, and what was appended
OnGap = Callable[[int, int], None]


class Reader:
    """Reads one stream."""

    def __init__(
        self,
        link: Link,
        stream: str,
        *,
        batch_records_max: int = BATCH_RECORDS_MAX,
        batch_bytes_max: int = BATCH_BYTES_MAX,
        time_limit_s: float = REQUEST_TIME_LIMIT_S,
    ) -> None:
        self.stream = stream
        self._link = link
        self._batch_records_max = batch_records_max
        self._batch_bytes_max = batch_bytes_max
        self._time_limit_s = time_limit_s

    async def last(self) -> int:
        """The last sequence, from the leader; 0 in a stream that never had a record."""
        return (await look(self._link, self.stream)).last_sequence

    async def read(
        self, first: int = 1, last: int | None = None, *, on_gap: OnGap | None = None, subject: str = ""
    ) -> AsyncIterator[Record]:
        """Records ``first`` to ``last``, or to what is the last one when it is reached.

        With ``subject`` only its records come; what lies between them can't be told from a gap then, so none is
        reported. Raises ``Ambiguous`` when the store does not answer in time: go on from the sequence after the last
        one that came.
        """
        batches = Batches(self._link, self.stream, self._time_limit_s)
        following = max(first, 1)
        patience = _Patience(self._time_limit_s)
        try:
            while last is None or following <= last:
                count = self._batch_records_max if last is None else min(self._batch_records_max, last - following + 1)
                records = await batches.ask(following, count, self._batch_bytes_max, subject)
                for sequence, record in records:
                    if last is not None and sequence > last:
                        break
                    if sequence > following and not subject:
                        self._tell_gap(following, sequence - 1, on_gap)
                    following = sequence + 1
                    yield sequence, record
                if records:
                    patience = _Patience(self._time_limit_s)
                    if last is not None and records[-1][0] > last:
                        if not subject and following <= last:
                            self._tell_gap(following, last, on_gap)
                        return
                    continue
                state = await look(self._link, self.stream)
                if following > state.last_sequence or subject:
                    return
                if following < state.first_sequence:
                    end = state.first_sequence - 1 if last is None else min(state.first_sequence - 1, last)
                    self._tell_gap(following, end, on_gap)
                    following = end + 1
                    continue
                await patience.wait(self.stream, following, state)
        finally:
            await batches.close()

    def _tell_gap(self, first: int, last: int, on_gap: OnGap | None) -> None:
        if on_gap is None:
            raise Gap(self.stream, first, last)
        on_gap(first, last)


async def leader_record(link: Link, stream: str, sequence: int) -> bytes | None:
    """A record from the stream's leader; None is the truth then: it is not there."""
    try:
        answer = await link.api(f"STREAM.MSG.GET.{stream}", {"seq": sequence})
    except Refused as refusal:
        if refusal.code != NO_MESSAGE:
            raise
        return None
    return base64.b64decode(answer["message"].get("data", ""))


class _Patience:
    """A replica that is behind is asked again for a while."""

    def __init__(self, seconds: float) -> None:
        self._deadline = asyncio.get_running_loop().time() + seconds

    async def wait(self, stream: str, sequence: int, state: StreamState) -> None:
        if asyncio.get_running_loop().time() > self._deadline:
            raise Ambiguous(f"{stream}: {sequence} is not there yet, its leader has {state.last_sequence}")
        await asyncio.sleep(STALE_PAUSE_S)


class Batches:
    """One subscription for the answers of many requests, one request at a time.

    Each request has a reply subject of its own, so that what comes late to an earlier one is not taken for an answer.
    """

    def __init__(self, link: Link, stream: str, time_limit_s: float) -> None:
        self._link = link
        self._stream = stream
        self._time_limit_s = time_limit_s
        self.up_to = 0  # the last sequence that the replica had which answered a query for last records; else 0
        self._client: Client | None = None
        self._subscription: Subscription | None = None
        self._inbox = ""
        self._asked = 0
        self._reply = ""
        self._records: list[Record] = []
        self._status: asyncio.Future[tuple[str, str]] | None = None

    async def ask(self, first: int, count: int, bytes_max: int, subject: str) -> list[Record]:
        """Records from ``first`` on; none when the replica that answers has none there."""
        query: dict[str, object] = {"seq": first, "batch": count, "max_bytes": bytes_max}
        if subject:
            query["next_by_subj"] = subject
        return await self.query(query)

    async def query(self, query: dict[str, object]) -> list[Record]:
        """What the store's direct get answers to a query in its own words."""
        self._asked += 1
        self._records = []
        self._status = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._time_limit_s):
                client = await self._subscribed()
                self._reply = f"{self._inbox}.{self._asked}"
                await client.publish(f"{API}.DIRECT.GET.{self._stream}", json.dumps(query).encode(), self._reply)
                status, description = await self._status
        except TimeoutError:
            raise Ambiguous(f"{self._stream}: no records within {self._time_limit_s:g} s") from None
        except (nats.errors.Error, OSError) as error:
            raise Ambiguous(f"{self._stream}: {describe(error)}") from error
        if status == "503":
            raise Ambiguous(f"{self._stream}: nobody answers there")
        if status not in (END_OF_BATCH, NOTHING_THERE):
            raise Refused(int(status), f"{self._stream}: {description} ({status})")
        records, self._records = self._records, []
        return records

    def abandon(self, reason: str) -> None:
        """The connection went: the answer will not come, so nobody has to wait out the time limit."""
        if self._status is not None and not self._status.done():
            self._status.set_exception(Ambiguous(f"{self._stream}: {reason}"))

    async def close(self) -> None:
        """Ends the subscription."""
        if self._subscription is not None and self._client is not None and not self._client.is_closed:
            await self._subscription.unsubscribe()
        self._subscription = None

    async def _subscribed(self) -> Client:
        client = self._link.client
        if self._client is not client or self._subscription is None:
            self._client = client
            self._inbox = client.new_inbox()
            self._subscription = await client.subscribe(f"{self._inbox}.*", cb=self._arrived)
        return client

    async def _arrived(self, message: Msg) -> None:
        if message.subject != self._reply or self._status is None or self._status.done():
            return
        headers = message.headers or {}
        sequence = headers.get("Nats-Sequence")
        if sequence is not None:
            self._records.append((int(sequence), message.data))
        elif "Status" in headers:
            self.up_to = int(headers.get("Nats-UpTo-Sequence", 0))
            self._status.set_result((headers["Status"], headers.get("Description", "")))


class Lanes:
    """Requests to one stream side by side: a bounded number under way, the others wait for their turn.

    A lane is kept for the next request, so that one costs no subscription. ``bytes_read`` counts what came.
    """

    def __init__(self, link: Link, stream: str, count: int = LANES, *, time_limit_s: float = REQUEST_TIME_LIMIT_S):
        self.stream = stream
        self.link = link
        self.bytes_read = 0
        self._time_limit_s = time_limit_s
        self._turns = asyncio.Semaphore(count)
        self._idle: list[Batches] = []
        self._busy: set[Batches] = set()
        self._unwatch = link.watch(self._turned)

    async def next(self, first: int, subject: str, count: int = 1, bytes_max: int = BATCH_BYTES_MAX) -> list[Record]:
        """The records of a subject from a sequence on; none when the replica that answers has none there."""
        return await self.query({"seq": first, "batch": count, "max_bytes": bytes_max, "next_by_subj": subject})

    async def last_of(self, subjects: list[str], count: int) -> list[Record]:
        """The last record of each subject, as one replica has them at one moment, by sequence."""
        return await self.query({"multi_last": subjects, "batch": count})

    async def query(self, query: dict[str, object]) -> list[Record]:
        """One request in the store's own words."""
        async with self._turns:
            lane = self._idle.pop() if self._idle else Batches(self.link, self.stream, self._time_limit_s)
            self._busy.add(lane)
            try:
                records = await lane.query(query)
            finally:
                self._busy.discard(lane)
                self._idle.append(lane)
        self.bytes_read += sum(len(record) for _, record in records)
        return records

    async def close(self) -> None:
        """Ends the subscriptions; nothing is under way any more."""
        self._unwatch()
        for lane in self._idle:
            await lane.close()
        self._idle.clear()

    def _turned(self, up: bool, reason: str) -> None:
        if not up:
            for lane in self._busy:
                lane.abandon(reason)
