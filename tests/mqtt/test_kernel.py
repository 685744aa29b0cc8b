"""The compiled kernel and its plain twin give the same answers to the same bytes, and what they write can be read."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.mqtt.codec import decode
from brookmq.mqtt.packets import Publish
from tests.catalogue import CATALOGUE
from tests.harness import wire
from tests.harness.wire import Kind
from tests.mqtt import kernels

PLAIN = kernels.plain()
COMPILED = kernels.compiled()
FORMS = [PLAIN] if COMPILED is None else [PLAIN, COMPILED]
LIMIT = 1 << 20
TOPICS = st.sampled_from(["a", "a/b", "a/c", "é/日", "x" * 130, ""])
PAYLOADS = st.sampled_from([b"", b"x", b"hello", bytes(100), bytes(200), bytes(17_000)])
PACKET_IDS = st.sampled_from([0, 1, 2, 255, 256, 65_535])

needs_both = pytest.mark.skipif(COMPILED is None, reason="there is no compiler here")


@st.composite
def publishes(draw: st.DrawFn, version: int) -> bytes:
    """Mostly packets that make runs: few topics, few flags."""
    qos = draw(st.sampled_from([0, 0, 1, 1, 2]))
    props = draw(st.sampled_from([(), (), (), ((wire.Property.CONTENT_TYPE, "t"),)]))
    return wire.publish(
        draw(TOPICS),
        draw(PAYLOADS),
        version=version,
        qos=qos,
        packet_id=draw(PACKET_IDS) if qos else None,
        retain=draw(st.sampled_from([False, False, False, True])),
        dup=draw(st.sampled_from([False, False, False, True])),
        props=props,
    )


@st.composite
def repeated(draw: st.DrawFn, version: int) -> bytes:
    """The same packet again and again: a run, as publishers make them."""
    return draw(publishes(version)) * draw(st.integers(2, 6))


@st.composite
def acknowledgements(draw: st.DrawFn) -> bytes:
    kind = draw(st.sampled_from([Kind.PUBACK, Kind.PUBREC, Kind.PUBREL, Kind.PUBCOMP]))
    ids = draw(st.lists(PACKET_IDS, min_size=1, max_size=6))
    reason = draw(st.sampled_from([None, None, None, 0, 0x92]))
    return b"".join(wire.acknowledge(kind, number, reason) for number in ids)


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, int, bool, int]:
    """``(data, position, version 5, largest packet)``; cut anywhere, damaged now and then."""
    version = draw(st.sampled_from([3, 4, 5]))
    catalogue = st.sampled_from([entry.data for entry in CATALOGUE.values()])
    part = st.one_of(publishes(version), repeated(version), acknowledgements(), catalogue, st.binary(max_size=8))
    parts = draw(st.lists(part, min_size=1, max_size=8))
    data = bytearray(b"".join(parts)) or bytearray(b"\x30")
    if draw(st.booleans()):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    if draw(st.booleans()):
        del data[draw(st.integers(1, len(data))) :]
    starts = [0]
    for each in parts:
        starts.append(starts[-1] + len(each))
    position = draw(st.sampled_from([at for at in starts if at < len(data)]))
    version5 = draw(st.sampled_from([version == 5, version == 5, version != 5]))
    return bytes(data), position, version5, draw(st.sampled_from([LIMIT, LIMIT, 150, 20]))


def outcome(kernel: ModuleType, data: bytes, position: int, version5: bool, largest: int) -> list[Any]:
    """Everything that a run can be asked."""
    run = kernel.Run()
    end = run.scan(data, position, version5, largest)
    if not end:
        return [end]
    assert run.end == end
    told: list[Any] = [end, run.data, run.start, run.count, run.qos, bool(run.version5), run.largest, run.topic_size]
    topic = run.topic()
    told += [topic, run.has_topic(topic), run.has_topic(topic + b"x"), run.has_topic(b""), run.has_topic(topic[1:])]
    told += [run.payload(index) for index in range(run.count)]
    told += [run.ids()] if run.qos else []
    for other in (True, False, True):  # the second answer comes out of its memory
        told.append(run.qos0(other))
    for first in {0, run.count // 2, run.count - 1}:
        for count in {1, run.count - first}:
            ids = b"".join((1000 + number).to_bytes(2, "big") for number in range(count))
            told += [run.with_ids(other, qos, ids, first) for other in (True, False) for qos in (1, 2)]
    return told


@needs_both
@given(streams())
def test_runs_are_the_same_in_both_forms(stream: tuple[bytes, int, bool, int]) -> None:
    assert COMPILED is not None
    assert outcome(COMPILED, *stream) == outcome(PLAIN, *stream)


@needs_both
@given(st.lists(st.tuples(streams(), st.booleans()), min_size=2, max_size=4))
def test_a_run_keeps_nothing_of_the_one_before(scans: list[tuple[tuple[bytes, int, bool, int], bool]]) -> None:
    assert COMPILED is not None
    runs = [COMPILED.Run(), PLAIN.Run()]
    for stream, version5 in scans:
        ends = [run.scan(*stream) for run in runs]
        assert ends[0] == ends[1]
        if ends[0]:
            assert runs[0].qos0(version5) == runs[1].qos0(version5)
            assert [runs[0].payload(i) for i in range(runs[0].count)] == [
                runs[1].payload(i) for i in range(runs[1].count)
            ]


@needs_both
@given(streams())
def test_frames_and_acknowledgements_are_the_same_in_both_forms(stream: tuple[bytes, int, bool, int]) -> None:
    assert COMPILED is not None
    data, position, _, _ = stream
    for at in {position, len(data) - 1, *range(min(len(data), 40))}:
        assert COMPILED.frame(data, at) == PLAIN.frame(data, at)
        ids = PLAIN.ack_ids(data, at)
        assert COMPILED.ack_ids(data, at) == ids
        for head in (0x40, 0x50, 0x62, 0x70):
            assert COMPILED.acks(head, ids) == PLAIN.acks(head, ids)


def split(kernel: ModuleType, data: bytes, version: int) -> list[Publish]:
    found: list[Publish] = []
    at = 0
    while at < len(data):
        body, end = kernel.frame(data, at)
        assert at < body <= end <= len(data)
        packet = decode(data[at], data[body:end], version)
        assert isinstance(packet, Publish)
        found.append(packet)
        at = end
    return found


@pytest.mark.parametrize("kernel", FORMS)
@given(streams())
def test_a_run_says_what_its_packets_say(kernel: ModuleType, stream: tuple[bytes, int, bool, int]) -> None:
    """Whatever it is made into, each message keeps topic and payload and gets the QoS and id that were asked for."""
    data, position, version5, largest = stream
    run = kernel.Run()
    end = run.scan(data, position, version5, largest)
    if not end or not is_text(run.topic()):
        return
    came = split(kernel, data[position:end], 5 if version5 else 4)
    assert len(came) == run.count
    content = [(packet.topic, packet.payload) for packet in came]
    for version in (4, 5):
        zero = split(kernel, run.qos0(version == 5), version)
        assert [(packet.topic, packet.payload) for packet in zero] == content
        assert {(packet.qos, packet.packet_id, packet.retain, packet.dup) for packet in zero} == {(0, 0, False, False)}
        for qos in (1, 2):
            ids = [7 + number for number in range(run.count)]
            raw = b"".join(number.to_bytes(2, "big") for number in ids)
            sent = split(kernel, run.with_ids(version == 5, qos, raw, 0), version)
            assert [(packet.topic, packet.payload) for packet in sent] == content
            assert [(packet.packet_id, packet.qos) for packet in sent] == [(number, qos) for number in ids]


def is_text(topic: bytes) -> bool:
    """A run's topic is checked by the channel, once for all its messages."""
    return (
        b"\0" not in topic
        and b"+" not in topic
        and b"#" not in topic
        and topic.decode(errors="ignore").encode() == topic
    )


@pytest.mark.parametrize("kernel", FORMS)
@pytest.mark.parametrize("version", [4, 5])
def test_a_run_ends_at_its_maximum(kernel: ModuleType, version: int) -> None:
    one = wire.publish("t", b"x", version=version)
    run = kernel.Run()
    end = run.scan(one * (kernel.RUN_COUNT_MAX + 5), 0, version == 5, LIMIT)
    assert run.count == kernel.RUN_COUNT_MAX
    assert end == kernel.RUN_COUNT_MAX * len(one)
    assert len(run.qos0(version != 5)) == end + (kernel.RUN_COUNT_MAX if version == 4 else -kernel.RUN_COUNT_MAX)


@pytest.mark.parametrize("kernel", FORMS)
@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"\x30", 0),
        (b"\x30\x80", 0),
        (b"\x30\x80\x80\x80", 0),
        (b"\x30\x80\x80\x80\x80", -1),
        (b"\x30\x80\x00", -1),  # [MQTT-1.5.5-1]
        (b"\x30\x7f", 129),
        (b"\x30\xff\xff\xff\x7f", 5 + 268_435_455),
    ],
)
def test_where_a_packet_ends(kernel: ModuleType, data: bytes, end: int) -> None:
    assert kernel.frame(data, 0)[1] == end
    assert kernel.Run().scan(data, 0, False, LIMIT) == 0


@pytest.mark.parametrize("kernel", FORMS)
def test_an_acknowledgement_of_id_0_ends_the_run(kernel: ModuleType) -> None:
    data = b"\x40\x02\x00\x01" + b"\x40\x02\x00\x02" + b"\x40\x02\x00\x00" + b"\x40\x02\x00\x03"
    assert kernel.ack_ids(data, 0) == b"\x00\x01\x00\x02"
    assert kernel.ack_ids(data, 8) == b""
    assert kernel.ack_ids(data[:7], 0) == b"\x00\x01"
    assert kernel.acks(0x40, b"\x00\x01\x00\x02") == data[:8]
