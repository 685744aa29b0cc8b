"""Batches as bytes: what was written is read, format 1 for ever, and what is no batch is an error with a name."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from brookmq.mqtt.publish import encode_publish
from brookmq.store.errors import BadRecord
from brookmq.store.journal.batch import ROWS_GROUPS_MIN, Batch, decode_batch, decode_filters, encode_batch
from brookmq.store.journal.group import Group
from tests.store.journal.groups import facts, groups, run_group

FIXTURES = Path(__file__).parents[1] / "fixtures"


def fixture(name: str) -> bytes:
    lines = (FIXTURES / name).read_text("utf-8").splitlines()
    return bytes.fromhex(" ".join(line.partition("#")[0] for line in lines))


ROWS = fixture("batch-1-rows.hex")
PACKED = fixture("batch-1-lz4.hex")


def rows_of_the_fixture() -> list[Group]:
    filters = bytes.fromhex("00000001 ffffffff")
    will = encode_publish(0x33, b"b", 4, True, b"\x01\x01", b"")
    first = encode_publish(0x32, b"a", 1, False, b"", b"x1") + encode_publish(0x32, b"a", 2, False, b"", b"x2")
    second = encode_publish(0x34, b"a", 3, False, b"", b"x3")
    return [
        Group(first, 2, 1, False, False, True, b"a", "c1", None, 1.5, captured=True, filters=filters),
        Group(second, 1, 2, False, False, True, b"a", "c1", None, 2.25, kept_publisher=True, filters=filters),
        Group(will, 1, 1, True, True, False, b"b", "é", "u", 1700000000.5, 1700000060.5, origin=b"w/7"),
    ]


def test_format_1_is_read_and_written_as_it_was() -> None:
    written = Batch(2, 300, rows_of_the_fixture(), everything=True)
    read = decode_batch(2, 17, ROWS)
    assert [facts(group) for group in read.groups] == [facts(group) for group in written.groups]
    assert [group.first for group in read.groups] == [300, 302, 303]
    assert (read.shard, read.sequence, read.base, read.end, read.count) == (2, 17, 300, 304, 4)
    assert (read.everything, read.first_time, read.last_time) == (True, 1.5, 1700000000.5)
    assert read.filters == (1, 0xFFFFFFFF)
    assert read.groups[2].message().properties == b"\x01\x01"
    assert encode_batch(written) == ROWS


def test_format_1_compressed_is_read_as_it_was() -> None:
    read = decode_batch(3, 9, PACKED)
    assert (read.base, read.count, read.everything, read.filters) == (7, 40, False, (5,))
    wanted = Batch(3, 7, [run_group(b"site/1", 40, b"payload-", filters=b"\0\0\0\5")])
    assert [facts(group) for group in read.groups] == [facts(group) for group in wanted.groups]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.large_base_example])
@given(st.lists(groups(), min_size=1, max_size=6), st.integers(0, 2**47), st.booleans())
@example([run_group(b"t" * 65_535, 3, client_id="c" * 65_535)], 0, True)
def test_what_was_written_is_read(written: list[Group], base: int, everything: bool) -> None:
    batch = Batch(1, base, written, everything)
    read = decode_batch(1, 5, encode_batch(batch))
    assert [facts(group) for group in read.groups] == [facts(group) for group in written]
    assert (read.base, read.end, read.count) == (base, batch.end, sum(group.count for group in written))
    assert (read.everything, read.first_time, read.last_time) == (everything, batch.first_time, batch.last_time)
    assert (read.filters, read.size, read.sequence) == (batch.filters, batch.size, 5)
    first, end, all_of_it, ids = decode_filters(1, 5, encode_batch(batch))
    assert (first, end, all_of_it) == (base, batch.end, everything)
    assert {id for (id,) in struct.iter_unpack(">I", ids)} == set(batch.filters)


def test_offsets_and_times_follow_from_its_groups() -> None:
    members = [run_group(count=count, published_at=at) for count, at in ((3, 20.0), (1, 10.0), (500, 30.0))]
    batch = Batch(0, 100, members)
    assert [group.first for group in members] == [100, 103, 104]
    assert (batch.end, batch.count, batch.first_time, batch.last_time) == (604, 504, 10.0, 30.0)
    assert batch.size > sum(len(group.packets) for group in members)


def test_filters_are_sorted_and_named_once() -> None:
    ids = [7, 0xFFFFFFFF, 7, 0, 300]
    members = [run_group(filters=struct.pack(">I", one)) for one in ids] + [run_group(filters=struct.pack(">2I", 9, 7))]
    assert Batch(0, 0, members).filters == (0, 7, 9, 300, 0xFFFFFFFF)
    assert Batch(0, 0, [run_group()]).filters == ()


def test_what_shrinks_is_compressed_and_what_does_not_is_not() -> None:
    same = Batch(0, 0, [run_group(count=500, payload=b"the same payload")])
    assert len(encode_batch(same)) * 3 < len(same.groups[0].packets)
    noise = [run_group(payload=random.Random(one).randbytes(1000)) for one in range(50)]
    body = encode_batch(Batch(0, 0, noise))
    assert sum(len(group.packets) for group in noise) < len(body)
    assert [facts(group) for group in decode_batch(0, 1, body).groups] == [facts(group) for group in noise]


def test_a_single_small_message_costs_few_bytes_more_than_its_packet() -> None:
    group = run_group(b"site/7/device/1234", client_id="device-1234", filters=b"\1\2\3\4")
    assert len(encode_batch(Batch(0, 10**9, [group]))) - len(group.packets) <= 45


def test_a_publisher_and_filters_are_stored_once_for_groups_that_follow() -> None:
    one = run_group(client_id="c" * 50, filters=bytes(40))
    alone = len(encode_batch(Batch(0, 0, [one])))
    both = len(encode_batch(Batch(0, 0, [one, run_group(client_id="c" * 50, filters=bytes(40))])))
    assert both - alone < len(one.packets) + 20


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "ends in the middle"),
        (b"\x02" + ROWS[1:], r"journal_2, the batch at 17: format 2 is not known here \(1 is\)"),
        (ROWS[:-1], "bytes behind its rows instead of"),
        (ROWS + b"\0", "bytes behind its rows instead of"),
        (ROWS[:4] + b"\x05" + ROWS[5:], "4 messages instead of 5"),
        (ROWS[:6] + b"\xff\xff" + ROWS[8:], "a row with the flags 0xffff"),
        (ROWS[:6] + b"\x31\x04" + ROWS[8:], "a row with the flags 0x0431"),
        (ROWS[:8] + b"\x00" + ROWS[9:], "0 messages in 18 bytes"),
        (ROWS[:8] + b"\x13" + ROWS[9:], "19 messages in 18 bytes"),
        (ROWS[:10] + b"\xff" + ROWS[11:], "can't decode byte 0xff"),
        (ROWS[:2] + b"\xff" * 8 + b"\x7f" + ROWS[4:], "offsets from"),
        (ROWS[:2] + b"\xff" * 9 + b"\x7f" + ROWS[4:], "a number of more than 9 bytes"),
        (PACKED[:-1], "unpacked"),
        (PACKED[:5] + b"\xba" + PACKED[6:], "unpacked"),
        (PACKED[:5] + b"\xff\xff\xff\x7f" + PACKED[7:], "a content of"),
    ],
)
def test_what_is_no_batch_is_an_error_with_a_name(body: bytes, message: str) -> None:
    with pytest.raises(BadRecord, match=message):
        decode_batch(2, 17, body)


@settings(max_examples=500, deadline=None)
@given(st.sampled_from([ROWS, PACKED]), st.integers(0, 250), st.integers(0, 255), st.integers(0, 250))
def test_damaged_batches_never_do_worse_than_that(body: bytes, place: int, value: int, cut: int) -> None:
    damaged = bytearray(body)
    damaged[place % len(body)] = value
    for attempt in (bytes(damaged), body[: cut % len(body)], bytes(damaged[: cut % len(body)])):
        read = read_or_error(attempt)
        if isinstance(read, Batch):
            assert read.count == sum(group.count for group in read.groups)
        else:
            assert read.startswith("journal_2, the batch at 17: ")


def read_or_error(body: bytes) -> Batch | str:
    try:
        decode_filters(2, 17, body)
        return decode_batch(2, 17, body)
    except BadRecord as error:
        return str(error)


def test_every_cut_of_a_batch_is_an_error() -> None:
    for body in (ROWS, PACKED):
        for size in range(len(body)):
            with pytest.raises(BadRecord):
                decode_batch(0, 1, body[:size])


IDS = st.integers(0, 12)


@given(st.lists(st.lists(IDS, max_size=4), min_size=1, max_size=40), st.frozensets(IDS, max_size=13), st.booleans())
def test_a_reader_of_some_filters_gets_the_groups_of_these_in_order(
    ids: list[list[int]], wanted: frozenset[int], everything: bool
) -> None:
    filters = [b"".join(each.to_bytes(4) for each in some) for some in ids]
    batch = Batch(0, 0, [run_group(filters=each) for each in filters], everything)
    needed = [number for number, some in enumerate(ids) if everything or wanted & {*some}]
    found = list(batch.rows_for(wanted))
    assert found == (needed if len(ids) >= ROWS_GROUPS_MIN and not everything else list(range(len(ids))))
    assert list(batch.rows_for(None)) == list(range(len(ids)))
    assert list(batch.rows_for(wanted)) == found  # asked again, with what was made for the first reader
