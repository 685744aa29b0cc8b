"""The format ``brookmq`` of Spark.

What is wrong with the options is said as early as Spark lets it be said: with the schema, or with the reader where the
user brings a schema; and before a row is written.
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from brookmq.spark.batch_reader import BatchReader, PushDownReader
from brookmq.spark.options import SourceOptions, source_options
from brookmq.spark.schema import checked_names, spark_schema
from brookmq.spark.sink import BatchSink, StreamSink
from brookmq.spark.sink_columns import sink_columns
from brookmq.spark.sink_options import sink_options
from brookmq.spark.stream_reader import StreamReader

NAME = "brookmq"


class BrookSource(DataSource):
    """``spark.read.format("brookmq")``, ``spark.readStream``, ``frame.write`` and ``frame.writeStream``."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return spark_schema(self._source_options().columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = self._source_options()
        if options.rows_max is not None:
            raise ValueError("brookmq: the option maxRowsPerBatch is for streams; a batch read ends at endingPosition")
        kind = PushDownReader if options.push_down else BatchReader
        return kind(options, checked_names(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        options = self._source_options()
        if options.end is not None:
            raise ValueError("brookmq: a stream has no end; the option endingPosition is for batch reads")
        return StreamReader(options, checked_names(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        options = sink_options(dict(self.options), stream=False)
        if overwrite:
            raise ValueError('brookmq: what is published can\'t be taken back: write with mode("append")')
        return BatchSink(options, sink_columns(schema, options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        # ``overwrite`` is the output mode "complete": each batch has all rows, and all of them are published.
        options = sink_options(dict(self.options), stream=True)
        return StreamSink(options, sink_columns(schema, options))

    def _source_options(self) -> SourceOptions:
        return source_options(dict(self.options))
