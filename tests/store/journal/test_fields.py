"""Numbers and byte strings of the journal's records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.store.errors import BadRecord
from brookmq.store.journal.fields import FieldReader, put_bytes, put_varint


@given(st.lists(st.integers(0, 2**63 - 1) | st.binary(max_size=300)))
def test_what_was_put_is_read(fields: list[int | bytes]) -> None:
    out = bytearray()
    for field in fields:
        put_varint(out, field) if isinstance(field, int) else put_bytes(out, field)
    reader = FieldReader(bytes(out))
    assert [reader.varint() if isinstance(field, int) else reader.sized() for field in fields] == fields
    assert reader.rest() == b""


@pytest.mark.parametrize(
    ("value", "size"), [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (2**56 - 1, 8), (2**63 - 1, 9)]
)
def test_small_numbers_take_few_bytes(value: int, size: int) -> None:
    out = bytearray()
    put_varint(out, value)
    assert len(out) == size
    for cut in range(size):
        with pytest.raises(BadRecord, match="in the middle"):
            FieldReader(bytes(out[:cut])).varint()


def test_what_is_not_there_is_not_read() -> None:
    with pytest.raises(BadRecord, match="more than 9 bytes"):
        FieldReader(b"\xff" * 20).varint()
    for wrong in (4, -1, -(2**62)):
        with pytest.raises(BadRecord):
            FieldReader(b"abc").take(wrong)
        with pytest.raises(BadRecord):
            FieldReader(b"abc").skip(wrong)
    with pytest.raises(BadRecord):
        FieldReader(b"\x04abc").sized()
    with pytest.raises(BadRecord):
        FieldReader(b"abc", 4)


def test_it_begins_where_it_is_told_and_passes_over_what_it_is_told() -> None:
    reader = FieldReader(b"abcdef", 1)
    reader.skip(2)
    assert (reader.byte(), reader.rest()) == (ord("d"), b"ef")
