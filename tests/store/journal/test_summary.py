"""Summaries: what is written is found again, the format has a number and a fixture."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.base.errors import CallerError
from brookmq.store.errors import BadRecord
from brookmq.store.journal.postings import PARTS, Postings
from brookmq.store.journal.summary import Summary, encode_summary

FIXTURE = Path(__file__).parents[1] / "fixtures" / "summary-1.hex"
Batches = list[tuple[int, int, int]]


def written(part: int, batches: Batches, ids: dict[int, set[int]], everything: list[int], start: int) -> bytes:
    """The summary of some batches (base, end, sequence) with the ids in each."""
    postings = Postings()
    for number in range(len(batches)):
        postings.add(number, b"".join(struct.pack(">I", one) for one in sorted(ids.get(number, ()))))
    named, *lists = postings.encode(part, 0, len(batches), everything)
    return encode_summary(
        part,
        (start, batches[-1][1]),
        (batches[0][2], batches[-1][2] + 1),
        [batches[number] for number in named],
        [named.index(number) for number in everything],
        (lists[0], lists[1], lists[2]),
    )


@st.composite
def ranges(draw: st.DrawFn) -> tuple[Batches, dict[int, set[int]], list[int]]:
    base, sequence = draw(st.integers(0, 2**47)), draw(st.integers(1, 2**50))
    batches: Batches = []
    for _ in range(draw(st.integers(1, 30))):
        end = base + draw(st.integers(1, 2000))
        batches.append((base, end, sequence))
        base, sequence = end, sequence + draw(st.integers(1, 3))
    ids = st.sets(st.integers(0, 8).map(lambda number: number * PARTS + 5), max_size=4)
    matched = {number: draw(ids) for number in range(len(batches))}
    return batches, matched, sorted(draw(st.sets(st.integers(0, len(batches) - 1), max_size=3)))


@given(ranges(), st.data())
def test_the_batches_of_an_id_are_found(
    given_range: tuple[Batches, dict[int, set[int]], list[int]], data: st.DataObject
) -> None:
    batches, ids, everything = given_range
    start = batches[0][0]
    summary = Summary(written(5, batches, ids, everything, start), "here")
    assert (summary.part, summary.start, summary.end) == (5, start, batches[-1][1])
    assert (summary.first, summary.next) == (batches[0][2], batches[-1][2] + 1)
    low = data.draw(st.integers(start, batches[-1][1]))
    high = data.draw(st.integers(low, batches[-1][1]))
    wanted = data.draw(st.sets(st.integers(0, 9).map(lambda number: number * PARTS + 5), max_size=3))
    expected = {
        batch
        for number, batch in enumerate(batches)
        if (wanted & ids[number] or number in everything) and batch[1] > low and batch[0] < high
    }
    assert set(summary.find(wanted, low, high)) == expected


def test_format_one_stays_readable() -> None:
    batches = [(1000, 1010, 7), (1010, 1011, 8), (1011, 1500, 10)]
    ids = {0: {5, 69}, 1: {5}, 2: {2**32 - 59}}
    body = bytes.fromhex(FIXTURE.read_text())
    assert written(5, batches, ids, [1], 1000) == body
    summary = Summary(body, "the fixture")
    assert set(summary.find([5], 1000, 1500)) == {batches[0], batches[1]}
    assert set(summary.find([2**32 - 59], 1000, 1500)) == {batches[1], batches[2]}


def test_what_is_no_summary_is_refused_by_name() -> None:
    body = written(5, [(0, 10, 1), (10, 20, 2)], {0: {5}, 1: {5, 69}}, [], 0)
    with pytest.raises(BadRecord, match=r"JOURNAL_3, the summary at 9: format 2 is not known here \(1 is\)"):
        Summary(b"\x02" + body[1:], "JOURNAL_3, the summary at 9")
    for size in range(len(body)):
        with pytest.raises(BadRecord, match="there"):
            Summary(body[:size], "there")
    with pytest.raises(BadRecord, match="do not end"):
        Summary(body + b"x", "there")


def test_a_range_that_its_columns_cannot_hold_is_a_bug_of_the_caller() -> None:
    with pytest.raises(CallerError, match="4294967296 offsets"):
        encode_summary(0, (0, 1 << 32), (1, 2), [], [], (b"", b"", b""))
