"""A stream of the store in memory: records with their headers, as they come from a direct get."""

from __future__ import annotations

from dataclasses import dataclass, field

from brookmq.spark.store_connection import Record
from brookmq.store.journal.batch import Batch, encode_batch
from brookmq.store.journal.summary import SUMMARY
from brookmq.store.record import DATA, OWNERSHIP, encode_record
from tests.store.journal.groups import run_group

HEADERS = b"NATS/1.0\r\nNats-Sequence: 0\r\n\r\n"
ANSWER_RECORDS = 3  # so that a run takes several requests


@dataclass
class MemoryStream:
    """``failures`` are raised one after the other before anything is answered."""

    records: dict[int, bytes] = field(default_factory=dict)
    end: int = 0
    failures: list[Exception] = field(default_factory=list)
    asked: list[tuple[str, int, int]] = field(default_factory=list)

    def add_batch(self, count: int, topic: bytes = b"a/b") -> int:
        group = run_group(topic, count)
        group.captured = True
        body = encode_batch(Batch(0, self.end, [group]))
        self.end += count
        return self._add(DATA, body)

    def add_summary(self) -> int:
        return self._add(SUMMARY, b"of the index")

    def add_owner(self) -> int:
        sequence = self._next
        self.records[sequence] = HEADERS + encode_record(OWNERSHIP, 0, 0, b"token" * 4)
        return sequence

    @property
    def _next(self) -> int:
        return max(self.records, default=0) + 1

    def _add(self, kind: int, body: bytes) -> int:
        sequence = self._next
        self.records[sequence] = HEADERS + encode_record(kind, sequence - 1, 1, body)
        return sequence

    def purge(self, *sequences: int) -> None:
        for sequence in sequences:
            del self.records[sequence]

    def fetch(self, stream: str, first: int, count: int) -> list[Record]:
        self.asked.append((stream, first, count))
        if self.failures:
            raise self.failures.pop(0)
        found = [sequence for sequence in sorted(self.records) if sequence >= first]
        return [Record(one, self.records[one], len(HEADERS)) for one in found[: min(count, ANSWER_RECORDS)]]
