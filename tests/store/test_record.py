"""The header of a record, against the bytes that are kept for each format."""

from __future__ import annotations

from pathlib import Path

import pytest

from brookmq.store.errors import BadRecord
from brookmq.store.record import (
    DATA,
    HEADER_BYTES,
    OWNERSHIP,
    Header,
    decode_header,
    decode_ownership,
    encode_ownership,
    encode_record,
)

FIXTURES = Path(__file__).with_name("fixtures")
DATA_RECORD = bytes.fromhex((FIXTURES / "record-1-data.hex").read_text())
OWNERSHIP_RECORD = bytes.fromhex((FIXTURES / "record-1-ownership.hex").read_text())


def test_format_1_is_read_and_written_as_it_was() -> None:
    assert decode_header(DATA_RECORD, 261) == Header(DATA, 258, 3)
    assert DATA_RECORD[HEADER_BYTES:] == b"body"
    assert encode_record(DATA, 258, 3, b"body") == DATA_RECORD
    assert decode_header(OWNERSHIP_RECORD, 300) == Header(OWNERSHIP, 300, 0)
    assert decode_ownership(OWNERSHIP_RECORD) == (bytes(range(16)), b"n1@host")
    assert encode_record(OWNERSHIP, 258, 0, encode_ownership(bytes(range(16)), b"n1@host")) == OWNERSHIP_RECORD


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b"", "no header"),
        (DATA_RECORD[: HEADER_BYTES - 1], "no header"),
        (b"\x02" + DATA_RECORD[1:], "format 2, which is not known"),
        (b"\x00" + DATA_RECORD[1:], "format 0, which is not known"),
        (encode_record(OWNERSHIP, 1, 1, b""), "number 1 of term 1, kind 1"),
        (encode_record(OWNERSHIP, 261, 0, b""), "number 0 of term 261, kind 1"),
        (encode_record(DATA, 261, 0, b""), "number 0 of term 261, kind 2"),
        (encode_record(DATA, 258, 4, b""), "number 4 of term 258, kind 2"),
    ],
)
def test_what_is_no_record_of_ours_is_refused(record: bytes, message: str) -> None:
    with pytest.raises(BadRecord, match=message):
        decode_header(record, 261)


def test_a_token_has_its_size() -> None:
    with pytest.raises(BadRecord):
        encode_ownership(b"short", b"")
    with pytest.raises(BadRecord):
        decode_ownership(OWNERSHIP_RECORD[: HEADER_BYTES + 15])
