"""The file of a backup: back as it was, however it comes in pieces, and refused when it is not whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.store.backup import file_format as file
from brookmq.store.backup.file_format import BackupReader, BadBackup, Event, Record, SectionWriter

FIXTURES = Path(__file__).parents[1] / "fixtures"
ABOUT = {"version": "1.2.3", "node": "n"}
records = st.lists(st.tuples(st.binary(max_size=10), st.binary(max_size=50)), max_size=6)
sections = st.lists(st.tuples(st.sampled_from(sorted(file.NAMES)), records), max_size=4)
RETAINED: list[Record] = [(b"ra", b"one"), (b"rb", b"two")]


def written(content: list[tuple[int, list[Record]]], cuts: int = 1) -> bytes:
    """A whole file; ``cuts`` records are put at a time."""
    out = file.head(ABOUT)
    for kind, entries in content:
        writer = SectionWriter(kind)
        out += writer.begin()
        for at in range(0, len(entries), cuts):
            out += writer.put(entries[at : at + cuts])
        out += writer.end()
    return out + file.end()


def read(data: bytes, piece: int) -> list[Event]:
    reader = BackupReader()
    events = [event for at in range(0, len(data), piece) for event in reader.feed(data[at : at + piece])]
    reader.finish()
    return events


def content_of(events: list[Event]) -> list[tuple[int, list[Record]]]:
    found: list[tuple[int, list[Record]]] = []
    gathered: list[Record] = []
    for event in events:
        if isinstance(event, file.Records):
            gathered += event.records
        elif isinstance(event, file.SectionEnd):
            assert event.records == len(gathered)
            found.append((event.kind, gathered))
            gathered = []
    return found


@given(sections, st.integers(1, 4), st.integers(1, 40))
def test_what_was_written_is_read_in_pieces_of_any_size(
    content: list[tuple[int, list[Record]]], cuts: int, piece: int
) -> None:
    events = read(written(content, cuts), piece)
    assert events[0] == file.Head(ABOUT)
    assert events[-1] == file.End()
    assert content_of(events) == content


def test_large_sections_are_cut_into_frames_and_their_checksum_does_not_depend_on_it() -> None:
    many = [(b"%d" % number, bytes(1000)) for number in range(500)]
    whole, cut = read(written([(file.VALUES, many)], 500), 10**6), read(written([(file.VALUES, many)], 7), 10**6)
    assert sum(isinstance(event, file.Records) for event in cut) > 5
    assert whole[-2] == cut[-2]
    assert isinstance(whole[-2], file.SectionEnd)


def test_every_cut_is_noticed() -> None:
    data = written([(file.CONFIGURATION, [(b"", b"x = 1")]), (file.VALUES, RETAINED)])
    for length in range(len(data)):
        with pytest.raises(BadBackup, match="cut off"):
            read(data[:length], 7)


def test_every_damaged_byte_of_a_section_is_noticed() -> None:
    data = written([(file.VALUES, RETAINED)])
    start = len(file.head(ABOUT))
    for at in range(start, len(data)):
        damaged = data[:at] + bytes((data[at] ^ 0x11,)) + data[at + 1 :]
        with pytest.raises(BadBackup):
            read(damaged, 1000)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "cut off within its head"),
        (b"PK\x03\x04 something else", "not a backup of BrookMQ"),
        (file.MAGIC + b"\x00\x02rest", "format 2, and this BrookMQ knows format 1 alone"),
        (file.MAGIC + b"\x00\x01\x00\x00\x00\x03{!}", "head of the backup is damaged"),
        (file.head(ABOUT) + b"\x09", "section of kind 9"),
        (file.head(ABOUT) + b"\x02\xff\xff\xff\xff", "a length that nothing in it can have"),
        (written([]) + b"more", "goes on behind its end"),
    ],
)
def test_what_is_no_backup_is_said(data: bytes, said: str) -> None:
    with pytest.raises(BadBackup, match=said):
        read(data or b"", 1000)


def test_format_1_is_read_and_written_as_it_was() -> None:
    kept = bytes.fromhex((FIXTURES / "backup-1.hex").read_text())
    assert written([(file.VALUES, RETAINED)]) == kept
    assert content_of(read(kept, 1000)) == [(file.VALUES, RETAINED)]
