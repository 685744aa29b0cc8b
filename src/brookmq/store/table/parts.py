"""The snapshots of a table's parts in their stream: read, written, and what they leave behind removed.

The stream keeps the last message of each subject. A snapshot counts from the moment its head is stored; its chunks have
subjects that no other snapshot uses, so nobody's late write changes one that counts, and a crash between two chunks
leaves only something to sweep up.

A head is written with the sequence of the head that it replaces. So an owner that does not know yet that it is none
can't put an older snapshot over a newer one: its write is refused, it reads whose head that is, and ends.

Heads are read from any replica that is not behind the *fence*, a message that each new owner writes first. What an
earlier owner relied on when it purged its log is before the fence.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Final

from brookmq.base import faults
from brookmq.store.errors import NO_MESSAGE, Ambiguous, Conflict, Deposed, RecordsLost, Refused, StoreFull
from brookmq.store.link import REQUEST_TIME_LIMIT_S, Link, checked
from brookmq.store.log import EXPECTED_ON_SUBJECT
from brookmq.store.reader import Batches, Reader
from brookmq.store.streams import Stream, declare, purge, subjects
from brookmq.store.table.asking import PAUSE_S, link_up, until_answered
from brookmq.store.table.format import Head, decode_message, encode_chunk, encode_fence, encode_head
from brookmq.store.table.interface import META_PART
from brookmq.store.table.loading import Snapshot

READ_BYTES_MAX: Final = 1024 * 1024  # in one answer, as they are stored; a larger head comes alone
MISSING_TIMES_MAX: Final = 400  # with the pauses 20 s, longer than an election: what is still not there is gone


class PartStore:
    """The snapshots of one table. ``open`` first."""

    def __init__(self, link: Link, name: str, *, time_limit_s: float = REQUEST_TIME_LIMIT_S) -> None:
        self.stream = f"{name.upper()}_PARTS"
        self.bytes_written = 0  # as they are stored
        self._link = link
        self._prefix = f"{name}_parts"
        self._time_limit_s = time_limit_s
        self._term = 0
        self._fence = 0  # the sequence of our fence
        self._number = 0  # of the last snapshot in this term
        self._heads: dict[int, int] = {}  # part → sequence of its head, as far as known
        self._littered: set[int] = set()  # parts that have chunks, of a snapshot that counts or of none
        self._lane = Batches(link, self.stream, time_limit_s)
        self._unwatch = link.watch(lambda up, reason: None if up else self._lane.abandon(reason))

    async def open(self, term: int, replicas: int) -> set[int]:
        """Makes this term the one that writes; returns the parts that have a snapshot."""
        self._term = term
        await declare(
            self._link,
            Stream(name=self.stream, subjects=(f"{self._prefix}.>",), replicas=replicas, records_per_subject_max=1),
        )
        self._fence = await self._write(f"{self._prefix}.fence", encode_fence(term))
        snapshotted: set[int] = set()
        for subject in await until_answered(self._link, self._list):
            words = subject.split(".")
            if words[1].isdecimal():
                (snapshotted if len(words) == 2 else self._littered).add(int(words[1]))
        return snapshotted

    async def close(self) -> None:
        """Ends the subscription."""
        self._unwatch()
        await self._lane.close()

    async def get(self, parts: list[int]) -> dict[int, Snapshot]:
        """Snapshots of these parts, which have one; not always of all, but of at least one."""
        heads = [self._head_subject(part) for part in parts]
        missing = 0
        while missing < MISSING_TIMES_MAX:
            try:
                query = {"multi_last": heads, "batch": len(heads), "max_bytes": READ_BYTES_MAX}
                records = await self._lane.query(query)
                if records and self._lane.up_to >= self._fence:
                    return dict([await self._snapshot(sequence, record) for sequence, record in records])
                missing += 1  # a replica that is behind
            except (Ambiguous, StoreFull):
                await link_up(self._link)
            await asyncio.sleep(PAUSE_S)
        raise RecordsLost(f"{self.stream}: no snapshot of parts {parts}, which had one")

    async def meta(self) -> Snapshot:
        """The snapshot of the part that is there at once."""
        return (await self.get([META_PART]))[META_PART]

    async def put(self, part: int, covered: int, contents: list[bytes]) -> None:
        """Writes a snapshot; the store has it when this returns. Raises ``Deposed`` when another owner has."""
        self._number += 1
        head = Head(part, self._term, self._number, covered, len(contents) - 1)
        first = 0
        if head.chunks:
            self._littered.add(part)
        for index, content in enumerate(contents[:-1]):
            if faults.armed:
                faults.hit("snapshot.write")
            sequence = await self._write(self._chunk_subject(head, index), encode_chunk(index, content))
            first = first or sequence
        if faults.armed:
            faults.hit("snapshot.write")
        await self._commit(head, encode_head(head, contents[-1]))
        if part in self._littered:
            await until_answered(self._link, lambda: self._sweep(part, first or self._heads[part]))
            if not head.chunks:
                self._littered.discard(part)

    # Inside

    def _head_subject(self, part: int) -> str:
        return f"{self._prefix}.{part:04d}"

    def _chunk_subject(self, head: Head, index: int | str) -> str:
        return f"{self._head_subject(head.part)}.{head.identity}.{index}"

    async def _list(self) -> set[str]:
        found, last = await subjects(self._link, self.stream, f"{self._prefix}.>")
        if last < self._fence:
            raise Ambiguous(f"{self.stream}: its leader has {last}, and {self._fence} is stored")
        return found

    async def _snapshot(self, sequence: int, record: bytes) -> tuple[int, Snapshot]:
        """The snapshot with this head, its chunks read."""
        where = f"{self.stream}, message {sequence}"
        message = decode_message(record, where)
        head, content = message.head, message.content
        if head is None:
            raise RecordsLost(f"{where}: a message that is no head, where one was")
        if head.chunks:
            self._littered.add(head.part)
            content = b"".join([*await self._chunks(head), content])
        self._heads[head.part] = sequence
        return head.part, Snapshot(head.covered, content)

    async def _chunks(self, head: Head) -> list[bytes]:
        reader = Reader(self._link, self.stream, time_limit_s=self._time_limit_s)
        chunks: dict[int, bytes] = {}
        async for sequence, record in reader.read(subject=self._chunk_subject(head, "*")):
            message = decode_message(record, f"{self.stream}, message {sequence}")
            chunks[message.number] = message.content
        if chunks.keys() != set(range(head.chunks)):
            raise Ambiguous(f"{self.stream}: {len(chunks)} of {head.chunks} chunks of part {head.part}")
        return [chunks[index] for index in range(head.chunks)]

    async def _write(self, subject: str, message: bytes) -> int:
        """Writes a message that may be written twice."""

        async def write() -> int:
            answer = await self._link.request(subject, message, time_limit_s=self._time_limit_s)
            return int(checked(answer.data, self.stream)["seq"])

        sequence = await until_answered(self._link, write)
        self.bytes_written += len(message)
        return sequence

    async def _commit(self, head: Head, message: bytes) -> None:
        subject = self._head_subject(head.part)

        async def write() -> int:
            headers = {EXPECTED_ON_SUBJECT: str(self._heads.get(head.part, 0))}
            try:
                answer = await self._link.request(subject, message, headers, time_limit_s=self._time_limit_s)
                return int(checked(answer.data, self.stream)["seq"])
            except Conflict:
                return await self._judge(head)

        self._heads[head.part] = await until_answered(self._link, write)
        self.bytes_written += len(message)

    async def _judge(self, ours: Head) -> int:
        """Another head came first: our own, whose answer was lost, or somebody else's."""
        found = await self._head_at_leader(ours.part)
        sequence, head = found if found is not None else (0, None)
        if head == ours:
            return sequence
        if head is not None and head.term > self._term:
            raise Deposed(f"{self.stream}: part {ours.part} was written in term {head.term}, this is {self._term}")
        self._heads[ours.part] = sequence
        raise Ambiguous(f"{self.stream}: part {ours.part} has another head")  # to be replaced at once

    async def _head_at_leader(self, part: int) -> tuple[int, Head | None] | None:
        query = {"last_by_subj": self._head_subject(part)}
        try:
            answer = await self._link.api(f"STREAM.MSG.GET.{self.stream}", query, time_limit_s=self._time_limit_s)
        except Refused as refusal:
            if refusal.code != NO_MESSAGE:
                raise
            return None
        sequence = int(answer["message"]["seq"])
        record = base64.b64decode(answer["message"].get("data", ""))
        return sequence, decode_message(record, f"{self.stream}, message {sequence}").head

    async def _sweep(self, part: int, before: int) -> int:
        """Removes chunks that no snapshot needs any more."""
        return await purge(self._link, self.stream, before, f"{self._head_subject(part)}.>")
