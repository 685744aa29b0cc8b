"""Records as columns: the compiled form and its plain twin, held to a reading of the groups and to each other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.mqtt.packet_types import PUBLISH
from brookmq.mqtt.properties import decode_properties
from brookmq.mqtt.publish import encode_publish
from brookmq.spark import columns as imported
from brookmq.spark.schema import COLUMNS, arrow_schema
from brookmq.store.errors import BadRecord
from brookmq.store.journal.batch import Batch, encode_batch
from brookmq.store.journal.group import Group
from tests.store.journal.groups import groups, run_group

FOLDER = Path(imported.__file__ or "").parent


def _load(name: str, path: Path, loader: type[ExtensionFileLoader | SourceFileLoader]) -> ModuleType:
    spec = spec_from_file_location(name, path, loader=loader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compiled() -> ModuleType | None:
    if imported.COMPILED:
        return imported
    for suffix in EXTENSION_SUFFIXES:
        if (path := FOLDER / f"columns{suffix}").exists():
            return _load("brookmq.spark.columns", path, ExtensionFileLoader)
    return None


PLAIN = _load("tests.spark.plain_columns", FOLDER / "columns.py", SourceFileLoader)
COMPILED = _compiled()
FORMS = [PLAIN] if COMPILED is None else [PLAIN, COMPILED]

HEADER = b"some bytes before the body"
EVERYTHING = 1 << 60
GROUPS = st.lists(groups(), min_size=1, max_size=6)

Accepts = Callable[[bytes], bool]


@pytest.fixture(params=FORMS, ids=["plain", "compiled"][: len(FORMS)])
def form(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


def record_of(members: list[Group], base: int = 0) -> bytes:
    return HEADER + encode_batch(Batch(3, base, members))


def read(
    form: ModuleType,
    records: list[bytes],
    *,
    names: tuple[str, ...] = tuple(COLUMNS),
    first: int = 0,
    last: int = EVERYTHING,
    accepts: Accepts | None = None,
    **limits: int,
) -> list[pa.RecordBatch]:
    columns = form.Columns(arrow_schema(names), 3, "node@host", accepts, **limits)
    batches = [batch for record in records for batch in columns.add(record, len(HEADER), first, last)]
    rest = columns.finish()
    assert columns.finish() is None
    batches += [] if rest is None else [rest]
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.equals(arrow_schema(names))
    return batches


def rows_of(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    """With times as microseconds: Python's own do not go as far as the journal's."""
    rows: list[dict[str, Any]] = []
    for batch in batches:
        for name in ("expires_at", "published_at"):
            if name in batch.schema.names:
                at = batch.schema.names.index(name)
                batch = batch.set_column(at, name, batch.column(at).cast(pa.int64()))
        rows += batch.to_pylist()
    return rows


def payloads_of(group: Group) -> list[bytes]:
    """By the length of what stands before it in each packet: nothing that is tested here is used."""
    found = []
    packets = group.packets
    for _ in range(group.count):
        size = shift = 0
        at = 1
        while True:
            byte = packets[at]
            size |= (byte & 0x7F) << shift
            at += 1
            shift += 7
            if byte < 0x80:
                break
        packet, packets = packets[at : at + size], packets[at + size :]
        rest = packet[2 + len(group.topic) + (2 if group.qos else 0) :]
        found.append(rest[1:] if group.version5 else rest)
    return found


def expected(group: Group, offset: int) -> list[dict[str, Any]]:
    if group.plain:
        payloads, properties = payloads_of(group), decode_properties(b"", 0, 0, PUBLISH)
    else:
        message = group.message()
        payloads = [message.payload]
        properties = decode_properties(message.properties, 0, len(message.properties), PUBLISH)
    return [
        {
            "topic": group.topic.decode(),
            "payload": payload,
            "qos": group.qos,
            "retain": group.retain,
            "client_id": group.client_id,
            "username": group.username,
            "user_properties": [{"name": n, "value": v} for n, v in properties.user_properties] or None,
            "content_type": properties.content_type,
            "response_topic": properties.response_topic,
            "correlation_data": properties.correlation_data,
            "payload_format": properties.payload_format_indicator,
            "expires_at": round(group.expires_at * 1e6) if group.expires_at else None,
            "published_at": round(group.published_at * 1e6),
            "partition": 3,
            "offset": offset + number,
            "node": "node@host",
        }
        for number, payload in enumerate(payloads)
    ]


def expected_rows(members: list[Group], base: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for group in members:
        found = expected(group, base)
        rows += found if group.captured else []
        base += group.count
    return rows


def captured(group: Group) -> Group:
    group.captured = True
    return group


@pytest.mark.parametrize("form", FORMS)
@given(batches=st.lists(GROUPS, max_size=4), base=st.integers(0, 1 << 40))
def test_every_message_that_is_captured_is_a_row(form: ModuleType, batches: list[list[Group]], base: int) -> None:
    rows: list[dict[str, Any]] = []
    records = []
    for members in batches:
        records.append(record_of(members, base))
        rows += expected_rows(members, base)
        base += sum(group.count for group in members)
    assert rows_of(read(form, records)) == rows
    assert rows_of(read(form, records, rows_max=2)) == rows


@pytest.mark.parametrize("form", FORMS)
@given(
    members=GROUPS, names=st.sets(st.sampled_from(list(COLUMNS)), min_size=1), part=st.tuples(*[st.integers(0, 20)] * 2)
)
def test_columns_offsets_and_topics_can_be_chosen(
    form: ModuleType, members: list[Group], names: set[str], part: tuple[int, int]
) -> None:
    chosen = tuple(sorted(names))
    first, last = 5 + min(part), 5 + max(part)
    liked = members[0].topic
    rows = [
        {name: row[name] for name in chosen}
        for row in expected_rows(members, 5)
        if first <= row["offset"] < last and row["topic"].encode() == liked
    ]
    found = read(
        form, [record_of(members, 5)], names=chosen, first=first, last=last, accepts=lambda topic: topic == liked
    )
    assert rows_of(found) == rows


def test_the_filter_is_asked_once_for_a_topic(form: ModuleType) -> None:
    asked: list[bytes] = []

    def accepts(topic: bytes) -> bool:
        asked.append(topic)
        return topic == b"a"

    members = [captured(run_group(topic, 2)) for topic in (b"a", b"b", b"a", b"b", b"a")]
    assert len(rows_of(read(form, [record_of(members)], accepts=accepts))) == 6
    assert asked == [b"a", b"b"]


def test_a_batch_is_full_by_rows_or_by_bytes(form: ModuleType) -> None:
    members = [captured(run_group(b"a", 100, b"x" * 50)) for _ in range(20)]
    sizes = [batch.num_rows for batch in read(form, [record_of(members)], rows_max=250)]
    assert sizes == [300] * 6 + [200]
    sizes = [batch.num_rows for batch in read(form, [record_of(members)], bytes_max=100 * (50 + 1 + 6))]
    assert sizes == [100] * 20


def test_one_message_with_properties_among_many_without(form: ModuleType) -> None:
    properties = b"\x01\x01\x03\x00\x01t\x08\x00\x01r\x09\x00\x02\xff\x00\x26\x00\x01n\x00\x01v\x26\x00\x01n\x00\x00"
    rich = Group(
        encode_publish(0x33, b"a", 1, True, properties, b"p"), 1, 1, True, True, False, b"a", "c", "u", 2.0, 9.5
    )
    members = [run_group(b"a", 300), rich, run_group(b"a", 300)]
    rows = rows_of(read(form, [record_of([captured(group) for group in members])]))
    assert rows[300]["user_properties"] == [{"name": "n", "value": "v"}, {"name": "n", "value": ""}]
    assert rows[300]["correlation_data"] == b"\xff\x00"
    assert rows[300]["expires_at"] == 9_500_000
    assert rows == expected_rows(members, 0)


def test_the_extent_of_a_record(form: ModuleType) -> None:
    record = record_of([run_group(count=3), run_group(count=4)], 1000)
    assert form.extent(record, len(HEADER)) == (1000, 1007)
    with pytest.raises(BadRecord, match="format 9"):
        form.extent(b"\x09\x00\x00\x00", 0)
    with pytest.raises(BadRecord):
        form.extent(b"\x01", 0)


@pytest.mark.parametrize("form", FORMS)
@given(members=GROUPS, data=st.data())
def test_a_broken_record_is_an_error_with_a_name_or_still_well_formed(
    form: ModuleType, members: list[Group], data: st.DataObject
) -> None:
    body = bytearray(encode_batch(Batch(3, 0, [captured(group) for group in members])))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.just(len(body)) | st.integers(0, len(body)))
    with contextlib.suppress(BadRecord):
        read(form, [HEADER + bytes(body[:cut])])
