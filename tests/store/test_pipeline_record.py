"""What the table of the pipeline keeps: read back as it was, refused where it is of another format."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.store.errors import BadRecord
from brookmq.store.pipeline_record import (
    NOTHING,
    ReaderState,
    Row,
    SinkPosition,
    decode_document,
    decode_reader,
    decode_sink,
    encode_document,
    encode_reader,
    encode_sink,
    is_sink,
    origin_of,
    reader_key,
    row_of,
    sink_key,
)
from brookmq.store.table.interface import part_of

FIXTURE = Path(__file__).with_name("fixtures") / "pipeline-1.hex"

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30)
ROWS = st.builds(Row, st.integers(-1, 1 << 62), st.integers(-1, 1 << 40))
SINK = SinkPosition(Row(12, 345), 1_800_000_000.5, frozenset({Row(12, 347), Row(12, 348), Row(13, 0)}))
READER = ReaderState("0a1b2c", {0: 5, 1: 70_000}, ("a/#", "b/ü"), 1_800_000_000.25, 3)


@given(ROWS, st.floats(0, 1e11), st.frozensets(st.builds(Row, st.integers(0, 3), st.integers(0, 30)), max_size=40))
def test_a_position_comes_back(row: Row, written_at: float, beyond: frozenset[Row]) -> None:
    position = SinkPosition(row, written_at, beyond)
    assert decode_sink(encode_sink(position)) == position


@given(NAMES, st.integers(0, 0xFFFF_FFFF), ROWS)
def test_an_origin_names_its_row(query: str, partition: int, row: Row) -> None:
    key = sink_key(query, partition)
    origin = origin_of(key, row)
    assert is_sink(origin)
    assert row_of(origin) == (key, row)
    assert part_of(key) == part_of(sink_key(query, 0)), "partitions of a query stand together"


@given(
    st.builds(
        ReaderState,
        NAMES,
        st.dictionaries(st.integers(0, 11), st.integers(0, 1 << 48)),
        st.lists(NAMES).map(tuple),
        st.floats(0, 1e11),
        st.integers(0, 1 << 40),
    )
)
def test_a_reader_comes_back(state: ReaderState) -> None:
    assert decode_reader(encode_reader(state)) == state


def test_what_a_newer_version_adds_to_a_reader_stays() -> None:
    state = encode_document({**decode_document(encode_reader(READER)), "owner": "x"})
    assert encode_reader(decode_reader(state)) == encode_document(
        {"owner": "x", **decode_document(encode_reader(READER))}
    )


def test_bytes_of_format_1_are_read_for_ever() -> None:
    lines = [bytes.fromhex(line) for line in FIXTURE.read_text().split()]
    assert lines == [
        sink_key("q", 7),
        origin_of(sink_key("q", 7), Row(1, 2)),
        encode_sink(SINK),
        encode_sink(SinkPosition()),
        reader_key("é"),
        encode_reader(READER),
    ]
    assert decode_sink(lines[2]) == SINK
    assert decode_sink(lines[3]).row == NOTHING
    assert decode_reader(lines[5]) == READER


@pytest.mark.parametrize(
    "state", [b"", b"\x02" + encode_sink(SINK)[1:], encode_sink(SINK)[:-1], encode_sink(SINK) + b"x"]
)
def test_another_position_is_refused(state: bytes) -> None:
    with pytest.raises(BadRecord, match="position of a query"):
        decode_sink(state)


@pytest.mark.parametrize("state", [b"", b"\x02{}", b"\x01[]", b"\x01{", b"\x01{}", b'\x01{"journal":1}'])
def test_another_reader_is_refused(state: bytes) -> None:
    with pytest.raises(BadRecord):
        decode_reader(state)
