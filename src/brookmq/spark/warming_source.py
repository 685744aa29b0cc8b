"""A source with some messages in it, in the journal's columns: for runs that need Spark's machinery and no node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from brookmq.spark.schema import COLUMNS, arrow_schema, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

ROWS: Final = 200
PARTITIONS: Final = 2


class WarmingSource(DataSource):
    """The same rows in each partition, once."""

    @classmethod
    def name(cls) -> str:
        return "brookmq_warming"

    def schema(self) -> str:
        return spark_schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Batch()

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return _Stream()


class _Batch(DataSourceReader):
    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return rows(partition.value)


class _Stream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        return {"at": 0}

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        return {"at": ROWS}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"at": ROWS}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        pass

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return rows(partition.value)


def rows(partition: int) -> Iterator[pa.RecordBatch]:
    """Some messages, with something in most of the columns."""
    import pyarrow as pa

    began = datetime(2026, 1, 1, tzinfo=UTC)
    made: list[dict[str, Any]] = [
        {
            "topic": f"devices/{number % 10}/data",
            "payload": b'{"t": %d.5, "s": {"a": [1, 2], "b": "c"}}' % number,
            "qos": 1,
            "retain": False,
            "client_id": f"device-{number % 10}",
            "user_properties": [{"name": "a", "value": "b"}],
            "published_at": began + timedelta(seconds=number),
            "partition": partition,
            "offset": number,
            "node": "n",
        }
        for number in range(ROWS)
    ]
    yield pa.RecordBatch.from_pylist([{**dict.fromkeys(COLUMNS), **row} for row in made], schema=arrow_schema())
