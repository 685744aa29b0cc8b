"""Reading ranges of a stream, from any replica, in batches.

One request brings many records: the store answers it with one message for each and then a status. A replica may be
behind, so "nothing there" is believed only when the stream's leader says so too; what a replica does have is right,
since it was agreed on before it was written.

Records that are gone (retention, purge) are never skipped silently: ``Gap`` is raised, or ``on_gap`` is told and
reading goes on behind them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Final

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from brookmq.store.errors import Ambiguous, Gap, Refused
from brookmq.store.link import API, REQUEST_TIME_LIMIT_S, Link, describe
from brookmq.store.streams import StreamState, look

BATCH_RECORDS_MAX: Final = 256
BATCH_BYTES_MAX: Final = 1024 * 1024  # bounds the memory of a reader; a larger record comes alone
STALE_PAUSE_S: Final = 0.02

END_OF_BATCH: Final = "204"
NOTHING_THERE: Final = "404"

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
    ) -> AsyncIterator[tuple[int, bytes]]:
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
        self._client: Client | None = None
        self._subscription: Subscription | None = None
        self._inbox = ""
        self._asked = 0
        self._reply = ""
        self._records: list[tuple[int, bytes]] = []
        self._status: asyncio.Future[tuple[str, str]] | None = None

    async def ask(self, first: int, count: int, bytes_max: int, subject: str) -> list[tuple[int, bytes]]:
        """Records from ``first`` on; none when the replica that answers has none there."""
        client = await self._subscribed()
        self._asked += 1
        self._reply = f"{self._inbox}.{self._asked}"
        self._records = []
        self._status = asyncio.get_running_loop().create_future()
        query: dict[str, object] = {"seq": first, "batch": count, "max_bytes": bytes_max}
        if subject:
            query["next_by_subj"] = subject
        try:
            async with asyncio.timeout(self._time_limit_s):
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
            self._status.set_result((headers["Status"], headers.get("Description", "")))
