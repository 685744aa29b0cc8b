"""What a Parquet file's own footer tells about its columns, in the form of Delta's log: readers skip files by it.

Left out is what could make a reader skip too much: smallest and largest of floating-point columns (NaN is not among
them, yet larger than all for Spark), and texts too long to repeat in the log.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

TEXT_CHARACTERS_MAX: Final = 64
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def file_statistics(footer: pq.FileMetaData, schema: pa.Schema) -> dict[str, Any]:
    """The number of records, and for each plain column how many are null and the smallest and largest of the rest."""
    nulls: dict[str, int] = {}
    smallest: dict[str, Any] = {}
    largest: dict[str, Any] = {}
    plain = {field.name: field.type for field in schema if not pa.types.is_nested(field.type)}
    for place in range(footer.num_columns):
        name = footer.schema.column(place).path
        if name not in plain:
            continue
        groups = [footer.row_group(group).column(place).statistics for group in range(footer.num_row_groups)]
        if any(group is None or not group.has_null_count for group in groups):
            continue
        nulls[name] = sum(group.null_count for group in groups)
        ends = _ends(plain[name], [group for group in groups if group.num_values > 0])
        if ends is not None:
            smallest[name], largest[name] = ends
    return {"numRecords": footer.num_rows, "minValues": smallest, "maxValues": largest, "nullCount": nulls}


def _ends(kind: pa.DataType, groups: list[pq.Statistics]) -> tuple[Any, Any] | None:
    if not groups or not all(group.has_min_max for group in groups):
        return None
    if pa.types.is_integer(kind):
        return min(group.min_raw for group in groups), max(group.max_raw for group in groups)
    if pa.types.is_string(kind):
        low, high = min(group.min for group in groups), max(group.max for group in groups)
        return (low, high) if max(len(low), len(high)) <= TEXT_CHARACTERS_MAX else None
    low, high = min(group.min_raw for group in groups), max(group.max_raw for group in groups)
    try:
        if pa.types.is_date(kind):
            return _day(low), _day(high)
        if pa.types.is_timestamp(kind):
            return _moment(low), _moment(high)
    except OverflowError:  # Spark has more years than Python
        return None
    return None


def _day(days: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=days)).isoformat()


def _moment(microseconds: int) -> str:
    moment = _EPOCH + timedelta(microseconds=microseconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond:06d}Z"
