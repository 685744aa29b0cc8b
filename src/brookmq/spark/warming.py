"""Making the cache with which Spark starts quickly (`jvm_cache`): ``python -m brookmq.spark.warming``.

A Java writes the cache when it ends, from what it has loaded until then. That takes half a minute of two cores, so it
is never done by the Java that a user works with, and never while a user waits: a program that has started Spark without
a cache, and is still there after a while, has one made beside it, by a process of its own with the lowest priority that
ends with the program. Who wants it earlier (images, set-up) runs this module.

What runs in it is what queries of BrookMQ do: a stream of a Python source, a rule over JSON, windows, files.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from brookmq.spark import LOOPBACK, session
from brookmq.spark.jvm_cache import JvmCache, make_options
from brookmq.spark.launching import LaunchError, end, launch, launcher_options, plain_installation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NICE: Final = 19
BYTES_FREE_MIN: Final = 2 << 30  # a cache has some 200 MB, and twice that while it is made
ENDING_S_MAX: Final = 600
MASTER: Final = "local[2]"


class BusyError(Exception):
    """Another process makes the same cache."""


def make_cache(root: Path | None = None) -> JvmCache | None:
    """Makes the cache of this installation, unless it is there. None where Spark is left to its own scripts."""
    from pyspark.core.context import SparkContext

    settings = {"spark.master": MASTER}
    installation = plain_installation(settings, os.environ)
    if installation is None:
        return None
    cache = JvmCache.of(installation, root)
    with _alone(cache.folder) as making:
        if cache.load() is not None:
            return cache
        if shutil.disk_usage(making).free < BYTES_FREE_MIN:
            raise OSError(f"{making} has less than {BYTES_FREE_MIN >> 30} GiB left")
        options = launcher_options(installation)
        trained = [*options, *make_options(installation.java, making)]
        # It ends with us, and what it says about classes that it can't keep is not of interest.
        launched = launch(installation, trained, settings, group=None, output=subprocess.DEVNULL)
        SparkContext._ensure_initialized(gateway=launched.gateway)  # noqa: SLF001 - as the constructor would
        with tempfile.TemporaryDirectory(prefix="brookmq-warming-") as scratch:
            spark = session(MASTER, spark__local__dir=scratch, spark__sql__warehouse__dir=f"{scratch}/warehouse")
            exercise(spark, Path(scratch))
            spark.stop()
        launched.gateway.shutdown()
        code = end(launched.process, ENDING_S_MAX)
        if code != 0 or not any(making.iterdir()):
            raise LaunchError(f"Java has ended with code {code} and left no cache")
        cache.save(making, options)
    cache.drop_others()
    return cache


@contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    """An empty folder for what is made, which no other process has; ``BusyError`` when one does."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = folder.with_name(f"{folder.name}.making")
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(str(folder)) from None
        shutil.rmtree(making, ignore_errors=True)  # of one that was killed
        making.mkdir(mode=0o700)
        try:
            yield making
        finally:
            shutil.rmtree(making, ignore_errors=True)


def exercise(spark: SparkSession, scratch: Path) -> None:
    """What queries of BrookMQ do, small."""
    import pyarrow as pa
    from pyspark.sql import functions as f

    from brookmq.spark.warming_source import WarmingSource

    spark.dataSource.register(WarmingSource)
    source = WarmingSource.name()

    def fields(messages: DataFrame) -> DataFrame:
        parsed = messages.withColumn("p", f.try_parse_json(f.col("payload").cast("string")))
        return parsed.selectExpr(
            "topic", "published_at", "try_variant_get(p, '$.t', 'double') AS t", "try_variant_get(p, '$.s') AS s"
        ).where("t > 0")

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    def sink(rows: DataFrame, _batch: int) -> None:
        plain = rows.select("topic", "t")
        plain.mapInArrow(keep, plain.schema).write.mode("append").parquet(str(scratch / "rows"))
        rows.select("topic", "t").toArrow()
        rows.count()

    def run(frame: DataFrame, name: str, **options: Any) -> None:
        writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(scratch / name))
        query = writer.outputMode(options.get("mode", "append")).trigger(availableNow=True).start()
        query.awaitTermination(ENDING_S_MAX)

    fields(spark.read.format(source).load()).write.format("noop").mode("overwrite").save()
    run(fields(spark.readStream.format(source).load()), "plain")
    windows = fields(spark.readStream.format(source).load()).withWatermark("published_at", "1 minute")
    counted = windows.groupBy(f.window("published_at", "1 minute"), "topic").agg(f.avg("t").alias("t"))
    run(counted, "windows", mode="update")
    spark.read.parquet(str(scratch / "rows")).groupBy("topic").agg(f.max("t")).orderBy("topic").collect()
    spark.createDataFrame(pa.table({"topic": ["a"], "payload": [b"{}"]})).createOrReplaceTempView("messages")
    spark.sql("SELECT topic, count(*) AS n FROM messages GROUP BY topic HAVING n > 0").toArrow()


def _end_with_parent() -> None:
    """The program is gone that this was started beside: what is half made is of no use."""

    def wait() -> None:
        while sys.stdin.buffer.read(1):
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--beside", is_flag=True, help="At the lowest priority, and only as long as the standard input is open.")
def main(beside: bool) -> None:
    """Make the cache with which Spark starts in half the time, unless it is there."""
    if beside:
        os.nice(NICE)
        _end_with_parent()
    os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    began = time.monotonic()
    try:
        cache = make_cache()
    except BusyError as error:
        raise click.ClickException(f"another process makes it: {error}") from None
    except (OSError, LaunchError) as error:
        raise click.ClickException(f"it can't be made: {error}") from None
    if cache is None:
        click.echo("Spark starts by its own scripts here, and has no cache.")
    else:
        click.echo(f"{cache.folder} ({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()
