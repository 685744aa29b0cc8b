"""A group says what its packets say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from brookmq.base.errors import InvariantError
from brookmq.mqtt.kernel import Run
from brookmq.mqtt.properties import forwardable
from brookmq.mqtt.publish import encode_publish
from brookmq.store.errors import BadRecord
from brookmq.store.journal.group import Group, topic_of
from tests.store.journal.groups import groups, run_group


def single(packet: bytes, topic: bytes, qos: int = 2, version5: bool = True) -> Group:
    return Group(packet, 1, qos, True, version5, False, topic, "c", "u", 5.0, 9.0)


@settings(max_examples=100, deadline=None)
@given(groups())
def test_its_topic_stands_in_its_packets(group: Group) -> None:
    assert topic_of(group.packets) == group.topic


@settings(max_examples=100, deadline=None)
@given(groups())
def test_its_packet_ids_are_those_of_its_packets(group: Group) -> None:
    ids = group.packet_ids()
    assert len(ids) == (2 * group.count if group.qos else 0)
    if group.plain:
        run = Run()
        assert run.scan(group.packets, 0, group.version5, len(group.packets)) == len(group.packets)
        assert ids == (run.ids() if group.qos else b"")


def test_a_message_of_the_slow_way_comes_back_whole() -> None:
    properties = b"\x01\x01\x26\x00\x01k\x00\x01v" * 20  # more than 127 bytes: their length takes two
    group = single(encode_publish(0x35, b"t/1", 0x1234, True, properties, b"body"), b"t/1")
    message = group.message()
    assert (message.topic, message.payload, message.qos, message.retain) == (b"t/1", b"body", 2, True)
    assert message.properties == properties
    assert (message.expires_at, message.published_at, message.client_id, message.username) == (9.0, 5.0, "c", "u")
    assert group.packet_ids() == b"\x12\x34"


def test_a_message_without_properties_and_without_payload() -> None:
    at_qos_0 = single(encode_publish(0x31, b"t", 0, False, b"", b""), b"t", 0, False)
    assert at_qos_0.packet_ids() == b""
    assert (at_qos_0.message().payload, at_qos_0.message().properties) == (b"", b"")


@settings(max_examples=100, deadline=None)
@given(groups().filter(lambda group: not group.plain))
def test_any_properties_are_passed_on_as_they_are(group: Group) -> None:
    encoded = group.message().properties
    assert forwardable(encoded, 0, len(encoded))[0] == encoded
    assert group.packets.endswith(encoded + group.message().payload)


def test_a_run_is_not_read_as_a_message() -> None:
    with pytest.raises(InvariantError):
        run_group(count=3).message()


WHOLE = encode_publish(0x34, b"topic", 1, True, b"\x01\x01", b"")


@pytest.mark.parametrize("size", range(len(WHOLE)))
def test_a_packet_that_is_cut_is_an_error_with_a_name(size: int) -> None:
    cut = single(WHOLE[:size], b"topic")
    with pytest.raises(BadRecord):
        cut.message()
    if size < 11:
        with pytest.raises(BadRecord):
            cut.packet_ids()
    if size < 9:
        with pytest.raises(BadRecord):
            topic_of(WHOLE[:size])


def test_properties_longer_than_their_packet() -> None:
    packet = encode_publish(0x34, b"t", 1, True, b"", b"")
    with pytest.raises(BadRecord, match="longer than their packet"):
        single(packet[:-1] + b"\x05", b"t").message()
    with pytest.raises(BadRecord, match="without the length"):
        single(packet[:-1] + b"\xff", b"t").message()


def test_packets_that_are_no_run() -> None:
    broken = run_group(count=2)
    mixed = Group(broken.packets + b"\x30", 2, 1, False, False, True, b"a/b", "c", None, 0.0)
    with pytest.raises(BadRecord, match="not a run"):
        mixed.packet_ids()


def test_what_it_counts_for_grows_with_what_it_has() -> None:
    plain = run_group()
    assert run_group(filters=bytes(40)).size() == plain.size() + 40
    assert run_group(client_id="client" + "x" * 7).size() == plain.size() + 7
    assert run_group(payload=b"payload" + bytes(9)).size() == plain.size() + 9
