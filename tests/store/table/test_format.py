"""The layouts of a table: what is written comes back, each format has a fixture, damage and newer formats are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.store.errors import BadRecord
from brookmq.store.table.format import (
    CHUNK,
    FENCE,
    HEAD,
    MARKER,
    PIECE,
    RECORD_STARTS,
    WHOLE,
    Head,
    Marker,
    content_of,
    decode_entries,
    decode_marker,
    decode_message,
    encode_change,
    encode_chunk,
    encode_fence,
    encode_head,
    encode_marker,
    entry_header,
    entry_of,
    form_of,
    split_changes,
)
from brookmq.store.table.interface import part_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
KEY, OP = b"cgateway-7", b"\x01an op"
HEADER = Head(part=9, term=2**40, number=3, covered=2**41 + 5, chunks=2)
ENTRIES = [(b"c%d" % number, b"state %d" % number) for number in range(60)]
CONTENT = b"".join(entry_header(len(key), len(state)) + key + state for key, state in ENTRIES)
REPEATED = [(7, None), (8, RECORD_STARTS[WHOLE] + encode_change(part_of(KEY), KEY, OP)), (9, b"")]

MADE = {
    "table-changes-1": RECORD_STARTS[WHOLE] + encode_change(part_of(KEY), KEY, OP) + encode_change(1024, b"", b"m"),
    "table-marker-1": encode_marker(Marker(6, True, REPEATED)),
    "table-head-1": encode_head(HEADER, CONTENT),
    "table-chunk-1": encode_chunk(1, CONTENT[:100]),
    "table-fence-1": encode_fence(2**40),
}


def fixture(name: str) -> bytes:
    return bytes.fromhex((FIXTURES / f"{name}.hex").read_text())


@pytest.mark.parametrize("name", MADE)
def test_what_was_written_once_is_read_for_ever(name: str) -> None:
    stored = fixture(name)
    if name == "table-changes-1":
        assert form_of(stored, "") == WHOLE
        tail: dict[int, list[tuple[int, bytes]]] = {}
        assert split_changes(content_of(stored), 5, tail, "") == {part_of(KEY), 1024}
        assert [(sequence, entry_of(change)) for sequence, change in tail[part_of(KEY)]] == [(5, (KEY, OP))]
        assert entry_of(tail[1024][0][1]) == (b"", b"m")
    elif name == "table-marker-1":
        assert form_of(stored, "") == MARKER
        assert decode_marker(stored, "") == Marker(6, True, REPEATED)
    elif name == "table-head-1":
        message = decode_message(stored, "")
        assert (message.kind, message.head) == (HEAD, HEADER)
        assert list(decode_entries(message.content, "")) == ENTRIES
    elif name == "table-chunk-1":
        assert decode_message(stored, "") == (CHUNK, None, 1, CONTENT[:100])
    else:
        assert decode_message(stored, "") == (FENCE, None, 2**40, b"")


@pytest.mark.parametrize("name", [name for name in MADE if name != "table-head-1"])
def test_what_is_written_is_the_format_with_that_number(name: str) -> None:
    assert MADE[name] == fixture(name)  # not of what is compressed: another LZ4 may do it better


@given(st.lists(st.tuples(st.binary(max_size=80), st.binary(max_size=80)), max_size=30), st.integers(1, 2**62))
def test_changes_come_back_in_order(entries: list[tuple[bytes, bytes]], sequence: int) -> None:
    tail: dict[int, list[tuple[int, bytes]]] = {}
    changes = b"".join(encode_change(part_of(key), key, op) for key, op in entries)
    assert split_changes(changes, sequence, tail, "") == {part_of(key) for key, _ in entries} == set(tail)
    for part, found in tail.items():
        expected = [(sequence, (key, op)) for key, op in entries if part_of(key) == part]
        assert [(place, entry_of(change)) for place, change in found] == expected


@given(st.lists(st.tuples(st.binary(max_size=300), st.binary(max_size=300)), max_size=30))
def test_entries_come_back_whether_they_are_compressed_or_not(entries: list[tuple[bytes, bytes]]) -> None:
    content = b"".join(entry_header(len(key), len(state)) + key + state for key, state in entries)
    message = decode_message(encode_head(HEADER, content), "")
    assert message.head == HEADER
    assert list(decode_entries(message.content, "")) == entries


@given(st.lists(st.tuples(st.integers(1, 2**60), st.none() | st.binary(max_size=300)), max_size=30), st.booleans())
def test_markers_come_back(bodies: list[tuple[int, bytes | None]], digest: bool) -> None:
    found = decode_marker(encode_marker(Marker(3, digest, bodies)), "")
    assert found == Marker(3, digest, bodies if digest else [])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "SESSIONS, record 5: 0 bytes"),
        (b"\x02\x00", "SESSIONS, record 5: changes of format 2"),
        (b"\x01\x09", "SESSIONS, record 5: changes of form 9"),
    ],
)
def test_a_record_that_is_not_known_is_named(body: bytes, message: str) -> None:
    with pytest.raises(BadRecord, match=message):
        form_of(body, "SESSIONS, record 5")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\x01", "1 bytes"),
        (b"\x02\x01\x00" + bytes(40), "a snapshot of format 2"),
        (b"\x01\x07\x00", "kind 7"),
        (b"\x01\x01\x00short", "damaged"),
        (b"\x01\x02\x01" + bytes(4) + b"no lz4 in here", "damaged"),
        (b"\x01\x03\x00" + bytes(9), "damaged"),
    ],
)
def test_a_message_that_is_not_known_is_named(message: bytes, reason: str) -> None:
    with pytest.raises(BadRecord, match=f"SESSIONS_PARTS, message 7: .*{reason}"):
        decode_message(message, "SESSIONS_PARTS, message 7")


def test_what_is_cut_short_is_noticed() -> None:
    changes = encode_change(1, b"key", b"op")
    with pytest.raises(BadRecord, match="do not end"):
        split_changes(changes[:-1], 1, {}, "here")
    with pytest.raises(BadRecord, match="do not end"):
        list(decode_entries(CONTENT[:-1], "here"))
    with pytest.raises(BadRecord, match="damaged marker"):
        decode_marker(encode_marker(Marker(6, True, REPEATED))[:-14], "here")
    assert form_of(RECORD_STARTS[PIECE] + changes[:3], "") == PIECE
