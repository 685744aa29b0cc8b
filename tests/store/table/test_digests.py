"""Markers: when they are due, and that the way back over them finds every record and reads few."""

from __future__ import annotations

import random

from brookmq.store.table.digests import Ranges, Walk
from brookmq.store.table.format import RECORD_STARTS, WHOLE, decode_marker
from brookmq.store.table.limits import TableLimits

LIMITS = TableLimits(range_records=8, digest_bytes_max=1_000)


def record(size: int) -> bytes:
    return RECORD_STARTS[WHOLE] + bytes(size)


class Log:
    """Records, with the markers that are due behind them."""

    def __init__(self) -> None:
        self.bodies: dict[int, bytes | None] = {}
        self.last = 0
        self.ranges = Ranges(LIMITS, 0)

    def append(self, body: bytes | None) -> None:
        following: bytes | None = body
        first = True
        while first or following is not None:
            first = False
            self.last += 1
            self.bodies[self.last] = following
            following = self.ranges.appended(self.last, following)

    def walk(self) -> tuple[dict[int, bytes | None], int]:
        """What is found, and how many records were read."""
        walk = Walk(min(self.bodies), self.last, window=16)
        read = 0
        for first, last in walk.ranges():
            for sequence in range(first, last + 1):
                if sequence in self.bodies:
                    walk.take(sequence, self.bodies[sequence], "")
                    read += 1
        return dict(walk.records()), read


def test_a_marker_after_so_many_records_repeats_them() -> None:
    ranges = Ranges(LIMITS, 0)
    for sequence in range(1, 8):
        assert ranges.appended(sequence, None if sequence == 3 else record(5)) is None
    marker = ranges.appended(8, record(5))
    assert marker is not None
    found = decode_marker(marker, "")
    assert found.previous == 0
    assert found.digest
    assert found.bodies == [(sequence, None if sequence == 3 else record(5)) for sequence in range(1, 9)]
    assert ranges.appended(9, marker) is None
    for sequence in range(10, 17):
        assert ranges.appended(sequence, record(5)) is None
    following = ranges.appended(17, record(5))
    assert following is not None
    assert decode_marker(following, "").previous == 9
    assert [sequence for sequence, _ in decode_marker(following, "").bodies] == list(range(10, 18))


def test_a_range_of_large_records_is_marked_and_not_repeated() -> None:
    ranges = Ranges(LIMITS, 0)
    marker = [ranges.appended(sequence, record(200)) for sequence in range(1, 9)][-1]
    assert marker is not None
    assert decode_marker(marker, "") == (0, False, [])
    assert len(marker) < 20


def test_the_way_back_finds_all_and_reads_few() -> None:
    log = Log()
    for _ in range(4_000):
        log.append(record(5))
    found, read = log.walk()
    assert found == log.bodies
    assert read < 16 + 4_000 / 8 + 2


def test_the_way_back_over_anything() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        log = Log()
        for _ in range(chance.randrange(1, 200)):
            size = chance.choice([5, 5, 50, 500])
            log.append(None if chance.random() < 0.1 else record(size))
        for sequence in range(1, chance.randrange(1, log.last + 1)):
            del log.bodies[sequence]
        found, _ = log.walk()
        assert found == log.bodies, f"seed {seed}"


def test_a_log_without_markers_is_read_from_its_beginning() -> None:
    log = Log()
    log.ranges = Ranges(TableLimits(range_records=1_000), 0)
    for _ in range(100):
        log.append(record(5))
    found, read = log.walk()
    assert found == log.bodies
    assert read == 100
