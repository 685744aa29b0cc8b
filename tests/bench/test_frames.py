"""The byte work of the load tool, compiled and plain on the same inputs."""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.bench import packets
from tests.bench.forms import forms

COUNTERS = (
    "received", "received_bytes", "duplicates", "acknowledged", "refused", "granted", "denied", "pings", "closed_with",
    "connack",
)  # fmt: skip
NOW = 5_000_000_000


@pytest.fixture(params=forms(), ids=lambda module: module.__name__.rpartition(".")[2])
def frames(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


def fed(frames: ModuleType, version: int, pieces: list[bytes]) -> tuple[dict[str, Any], bytes, list[int]]:
    """Counters, answers and latencies of an inbox that got these reads."""
    latencies = frames.Latencies()
    inbox = frames.Inbox(version, latencies)
    buffer = bytearray(65536)
    answers = b""
    for piece in pieces:
        start = inbox.restore(buffer)
        buffer[start : start + len(piece)] = piece
        answers += inbox.feed(buffer, start + len(piece), NOW) or b""
    return {name: getattr(inbox, name) for name in COUNTERS}, answers, latencies.counts()


def message(version: int, qos: int, packet_id: int = 1, *, stamp: int = NOW - 1000, dup: bool = False) -> bytes:
    packet, id_offset, _ = packets.publish(b"a/b", stamp.to_bytes(8) + b"rest", version, qos)
    content = bytearray(packet)
    if qos:
        content[id_offset : id_offset + 2] = packet_id.to_bytes(2)
    content[0] |= 8 * dup
    return bytes(content)


@pytest.mark.parametrize("version", [4, 5])
def test_messages_are_counted_and_answered_in_the_order_of_arrival(frames: ModuleType, version: int) -> None:
    stream = message(version, 0) + message(version, 1, 7) + message(version, 2, 8, dup=True) + message(version, 1, 9)
    counters, answers, latencies = fed(frames, version, [stream])
    assert counters["received"] == 4
    assert counters["received_bytes"] == 4 * 12
    assert counters["duplicates"] == 1
    assert answers == b"\x40\x02\0\x07\x50\x02\0\x08\x40\x02\0\x09"
    assert sum(latencies) == 4


def test_the_handshakes_of_qos_2_go_both_ways(frames: ModuleType) -> None:
    counters, answers, _ = fed(
        frames, 4, [b"\x50\x02\0\x05" + b"\x62\x02\0\x06" + b"\x70\x02\0\x07" + b"\x40\x02\0\x08"]
    )
    assert answers == b"\x62\x02\0\x05\x70\x02\0\x06"
    assert counters["acknowledged"] == 2


def test_a_refused_publish_ends_there(frames: ModuleType) -> None:
    counters, answers, _ = fed(frames, 5, [b"\x50\x03\0\x05\x97" + b"\x40\x03\0\x06\x10"])
    assert answers == b""
    assert (counters["refused"], counters["acknowledged"]) == (1, 2)


def test_what_else_a_broker_sends_is_noted(frames: ModuleType) -> None:
    stream = b"\x20\x03\0\0\0" + b"\x90\x06\0\x01\0\0\x80\x01" + b"\xd0\0" + b"\xe0\x01\x8e"
    counters, _, _ = fed(frames, 5, [stream])
    assert counters["connack"] == b"\0\0\0"
    assert (counters["granted"], counters["denied"]) == (2, 1)
    assert (counters["pings"], counters["closed_with"]) == (1, 0x8E)


@pytest.mark.parametrize("stamp", [0, NOW + 1])
def test_a_payload_without_a_timestamp_is_no_latency(frames: ModuleType, stamp: int) -> None:
    counters, _, latencies = fed(frames, 4, [message(4, 0, stamp=stamp)])
    assert counters["received"] == 1
    assert sum(latencies) == 0


@pytest.mark.parametrize(
    "broken",
    [
        b"\x30\xff\xff\xff\xff\x01",  # a remaining length of five bytes
        b"\x30\x01\0",  # no room for the topic's length
        b"\x30\x03\0\x09a",  # a topic longer than the packet
        b"\x32\x03\0\x01a",  # no packet id
        b"\x40\x01\0",  # an acknowledgement without a packet id
        b"\x90\x02\0\x01",  # a SUBACK without a code
    ],
)
def test_nonsense_is_an_error_and_not_a_count(frames: ModuleType, broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"^an? "):
        fed(frames, 4, [broken])


@pytest.mark.parametrize("broken", [b"\x30\x03\0\x01a", b"\x30\x04\0\x01a\x80", b"\x30\x04\0\x01a\x05"])
def test_properties_have_to_be_whole(frames: ModuleType, broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"^a PUBLISH"):
        fed(frames, 5, [broken])


packet_strategy = st.one_of(
    st.builds(message, st.just(4), st.integers(0, 2), st.integers(1, 65535), dup=st.booleans()),
    st.builds(lambda kind, number: bytes((kind, 2)) + number.to_bytes(2), st.sampled_from([0x40, 0x50, 0x62, 0x70]),
              st.integers(1, 65535)),
    st.just(b"\xd0\0"),
    st.integers(0, 400).map(lambda size: packets.publish(b"t", b"." * size, 4, 0)[0]),
)  # fmt: skip


@given(st.lists(packet_strategy, max_size=30), st.lists(st.integers(0, 4000), max_size=5))
def test_however_the_stream_is_cut_the_counts_are_the_same(sent: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(sent)
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[start:stop] for start, stop in itertools.pairwise(places)]
    results = [fed(frames, 4, division) for frames in forms() for division in ([stream], pieces)]
    assert all(result == results[0] for result in results)


@given(st.binary(max_size=200), st.sampled_from([4, 5]))
def test_any_bytes_get_the_same_from_both_forms(content: bytes, version: int) -> None:
    def outcome(frames: ModuleType) -> object:
        try:
            return fed(frames, version, [content])
        except ValueError as error:
            return str(error)

    outcomes = [outcome(frames) for frames in forms()]
    assert all(one == outcomes[0] for one in outcomes)


def test_a_block_patches_ids_timestamps_and_topics(frames: ModuleType) -> None:
    packet, id_offset, payload = packets.publish(b"t/00/000", bytes(8), 4, 1)
    at = packet.index(b"t/")
    block = frames.PublishBlock(packet, 3, id_offset, payload, (at + 2, 2, 50, 20), (at + 5, 3, 1000, 1))
    block.serial = 2
    assert block.fill(2, 0x1122) == 2 * len(packet)
    first, second = block.data[: len(packet)], block.data[len(packet) : 2 * len(packet)]
    assert b"t/40/002\0\x01" + bytes(6) + b"\x11\x22" in first
    assert b"t/10/003\0\x02" in second
    with pytest.raises(ValueError, match="more packets"):
        block.fill(4, 0)


def test_packet_ids_wrap_without_zero() -> None:
    for frames in forms():
        packet, id_offset, _ = packets.publish(b"t", b"", 4, 1)
        block = frames.PublishBlock(packet, 65535, id_offset)
        block.fill(65535, 0)
        block.fill(1, 0)
        assert block.data[id_offset : id_offset + 2] == b"\0\x01"


@given(st.integers(-5, 1 << 45), st.integers(1, 5))
def test_both_forms_count_latencies_alike(nanoseconds: int, times: int) -> None:
    counted = []
    for frames in forms():
        latencies = frames.Latencies()
        latencies.record(nanoseconds, times)
        counted.append((latencies.counts(), latencies.highest))
    assert all(one == counted[0] for one in counted)
    assert sum(counted[0][0]) == times


@pytest.mark.parametrize("version", [4, 5])
def test_the_null_broker_says_yes(frames: ModuleType, version: int) -> None:
    inbox = frames.NullInbox()
    stream = (
        packets.connect("c", version) + packets.subscribe([b"a"], version, 0)[0] + message(version, 0)
        + message(version, 1, 3) + message(version, 2, 4) + b"\x62\x02\0\x04" + packets.PINGREQ + packets.DISCONNECT
    )  # fmt: skip
    buffer = bytearray(stream)
    extra = b"\0" if version == 5 else b""
    assert inbox.feed(buffer, len(stream)) == (
        bytes((0x20, 2 + len(extra), 0, 0)) + extra
        + bytes((0x90, 3 + len(extra), 0, 1)) + extra + b"\0"
        + b"\x40\x02\0\x03\x50\x02\0\x04\x70\x02\0\x04\xd0\0"
    )  # fmt: skip
    assert inbox.received == 3
