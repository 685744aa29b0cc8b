"""Every entry of the shared catalogue: valid ones decode and encode again, broken ones end in their reason code."""

from __future__ import annotations

import pytest

from brookmq.mqtt.codec import PacketError, decode, encode
from brookmq.mqtt.kernel import frame
from brookmq.mqtt.packet_types import PACKET_NAMES
from tests.catalogue import BROKEN, CATALOGUE, CLIENT, SERVER, UNFRAMEABLE, VALID, Entry, find
from tests.mqtt.framing import split


def by_name(entry: Entry) -> str:
    return entry.name


@pytest.mark.parametrize("entry", VALID, ids=by_name)
def test_a_valid_packet_decodes_and_encodes_again(entry: Entry) -> None:
    packet = decode(*split(entry.data), entry.version)
    encoded = encode(packet, entry.version)
    if entry.canonical:
        assert encoded == entry.data
    assert decode(*split(encoded), entry.version) == packet


@pytest.mark.parametrize("entry", BROKEN, ids=by_name)
def test_a_broken_packet_ends_in_its_reason_code(entry: Entry) -> None:
    with pytest.raises(PacketError) as caught:
        decode(entry.first_byte, entry.body, entry.version)
    assert caught.value.reason == entry.reason
    assert str(caught.value).startswith(f"{PACKET_NAMES[entry.first_byte >> 4]}: ")


@pytest.mark.parametrize("entry", VALID, ids=by_name)
def test_a_packet_that_is_cut_short_never_gives_another_error_than_ours(entry: Entry) -> None:
    for size in range(min(len(entry.body), 300)):
        try:
            decode(entry.first_byte, entry.body[:size], entry.version)
        except PacketError as error:
            assert error.reason >= 0x80  # noqa: PT017


@pytest.mark.parametrize("data", UNFRAMEABLE.values(), ids=UNFRAMEABLE.keys())
def test_a_length_of_more_than_four_bytes_is_refused_before_the_codec(data: bytes) -> None:
    assert frame(data, 0)[1] == -1


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=by_name)
def test_an_entry_is_one_whole_packet(entry: Entry) -> None:
    assert split(entry.data) == (entry.first_byte, entry.body)


def test_the_catalogue_has_every_packet_type_valid_and_broken() -> None:
    assert {entry.first_byte >> 4 for entry in VALID} == set(range(1, 16))
    assert {entry.first_byte >> 4 for entry in BROKEN} == set(range(16))
    assert {entry.first_byte >> 4 for entry in find(CLIENT, 5)} >= {1, 3, 8, 10, 12, 14, 15}
    assert {entry.first_byte >> 4 for entry in find(SERVER, 4)} >= {2, 3, 9, 11, 13}
