"""What a sender may send is read as it was meant: every packet, every version, by hypothesis."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from brookmq.mqtt.codec import PacketError, decode, encode
from brookmq.mqtt.packets import Connect, Packet
from tests.catalogue import VALID, Entry
from tests.mqtt.framing import round_trip, split
from tests.mqtt.strategies import connects, packets


@settings(max_examples=500)
@given(packets())
def test_encode_then_decode(made: tuple[Packet, int]) -> None:
    packet, version = made
    assert round_trip(packet, version) == packet


@given(connects(4), st.integers(0, 255))
def test_a_connect_says_its_own_version(packet: Connect, version: int) -> None:
    assert decode(*split(encode(packet, version)), version) == packet


@settings(max_examples=1000)
@given(st.integers(0, 255), st.binary(max_size=80), st.sampled_from([3, 4, 5]))
@example(0x10, b"\x00\x04MQTT\x05\x02\x00\x00\x02\x26\x00\x00\x01c", 5)
def test_arbitrary_bytes_decode_or_raise_a_packet_error(first_byte: int, body: bytes, version: int) -> None:
    check_never_surprises(first_byte, body, version)


@st.composite
def damaged(draw: st.DrawFn) -> tuple[int, bytes, int]:
    """A valid packet with a few bytes changed, removed or put in: gets much deeper than arbitrary bytes."""
    entry: Entry = draw(st.sampled_from([entry for entry in VALID if len(entry.body) < 500]))
    body = bytearray(entry.body)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(body)))
        replaced = draw(st.integers(0, 3))
        body[at : at + replaced] = draw(st.binary(max_size=3))
    return entry.first_byte, bytes(body), draw(st.sampled_from([entry.version, 3, 4, 5]))


@settings(max_examples=1000)
@given(damaged())
def test_damaged_packets_decode_or_raise_a_packet_error(given_packet: tuple[int, bytes, int]) -> None:
    check_never_surprises(*given_packet)


def check_never_surprises(first_byte: int, body: bytes, version: int) -> None:
    """Either an error of ours with a code that says so, or a packet that survives its own encoding."""
    try:
        packet = decode(first_byte, body, version)
    except PacketError as error:
        assert error.reason in {0x81, 0x82, 0x84, 0x90, 0x94}  # noqa: PT017
        return
    version = packet.version if isinstance(packet, Connect) else version
    again = round_trip(packet, version)
    # MQTT 3.1 tolerates DUP at QoS 0 and so gives it back; everything else is equal too
    assert again == packet
