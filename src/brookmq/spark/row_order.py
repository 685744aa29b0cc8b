"""An order of rows that is the same whenever they come: for queries that give the same rows in another order when a
batch is repeated, as aggregations and joins may."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from brookmq.spark.row_packets import bytes_of
from brookmq.spark.sink_columns import SinkColumns

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS: Final = 10_000


def sorted_rows(batches: Iterable[pa.RecordBatch], columns: SinkColumns) -> Iterator[pa.RecordBatch]:
    """The rows of a partition by what is published of them; all of them are in memory for it."""
    import pyarrow as pa

    given = list(batches)
    if not given:
        return
    table = pa.Table.from_batches(given).combine_chunks()
    keys = zip(*(_comparable(table.column(place)) for _, place in sorted(columns.places.items())), strict=True)
    order = [row for row, _ in sorted(enumerate(keys), key=lambda pair: pair[1])]
    yield from table.take(order).to_batches(max_chunksize=BATCH_ROWS)


def _comparable(column: pa.ChunkedArray) -> list[str]:
    """Values as text, which nulls and lists can be compared by as well."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_nested(column.type):
        return [_written(value) for value in column]
    return [repr(value) for chunk in column.chunks for value in bytes_of(chunk)]


def _written(value: pa.Scalar) -> str:
    try:
        return repr(value.as_py())
    except UnicodeDecodeError:
        return ""  # can't be published: its place among the others of its kind does not matter
