"""Reading the journal with Spark, side by side with Spark's own Parquet reader: ``python -m bench.spark``.

The same rows and columns, from the journal of a node and from a Parquet folder that was written from it, into a sink
that does nothing. What is compared is the CPU time of all of Spark's processes (the JVM, the Python workers) per
million rows; the store's is told beside it. Rounds are interleaved, so that what else the machine does falls on both.
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import click
import psutil

from brookmq.mqtt.publish import encode_publish
from brookmq.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW_BYTES: Final = 200  # of topic, client id and payload
DEVICES: Final = 1000
CHUNKS: Final = 200  # of different bytes; they are sent again and again
CHUNK: Final = 1000  # messages that are sent at once, and acknowledged before the next but one
MILLION: Final = 1_000_000
CLIENT_ID: Final = "bench"
CONNECT: Final = b"\x10\x11\x00\x04MQTT\x04\x02\x00\x00\x00\x05" + CLIENT_ID.encode()
TARGET: Final = 2.0  # times the CPU of Spark's Parquet reader, at most
CONFIG: Final = '[journal]\ncapture = ["#"]\nshards = {shards}\n'


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one read, per million rows: CPU seconds of Spark (and of its Python workers alone), of the store; and rows per
    second of wall time."""

    spark_cpu_s: float
    python_cpu_s: float
    store_cpu_s: float
    rows_per_s: float


@dataclass(frozen=True, slots=True)
class Node:
    process: subprocess.Popen[str]
    mqtt_port: int
    url: str

    def store(self) -> psutil.Process:
        children = psutil.Process(self.process.pid).children(recursive=True)
        return next(child for child in children if "nats" in child.name())


@contextmanager
def node(folder: Path, shards: int) -> Iterator[Node]:
    """A node with a journal of its own that captures everything."""
    config = folder / "brookmq.toml"
    config.write_text(CONFIG.format(shards=shards))
    command = [sys.executable, "-m", "brookmq", "start", "--config", str(config), "--data-dir", str(folder / "data")]
    command += ["--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("brookmq ready "))
            listeners = dict(pair.split("=", 1) for pair in line.split()[2:])
            yield Node(process, int(listeners["mqtt"].rpartition(":")[2]), f"http://{listeners['http']}")
        finally:
            process.terminate()
            process.wait(60)


def chunks(burst: int) -> list[bytes]:
    """Messages of devices that send some at a time: JSON with numbers that nobody can guess, as sensors have them."""
    dice = random.Random(1)
    made = []
    for _ in range(CHUNKS):
        packets = []
        for number in range(CHUNK):
            if number % burst == 0:
                topic = f"sensors/{dice.randrange(DEVICES):04}/data".encode()
            payload = f'{{"temperature": {dice.gauss(20, 5)}, "humidity": {dice.random()}, "state": "running", '
            payload += f'"id": "{dice.getrandbits(128):032x}", "sequence": {number}'
            size = ROW_BYTES - len(topic) - len(CLIENT_ID) - 1
            packets.append(encode_publish(0x32, topic, number + 1, False, b"", f"{payload:{size}}}}".encode()))
        made.append(b"".join(packets))
    return made


def publish(port: int, rows: int, burst: int) -> None:
    """At QoS 1; every message is in the journal when it returns."""
    made = chunks(burst)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(CONNECT)
        acknowledged = connection.makefile("rb", 1 << 16)
        acknowledged.read(4)
        count = rows // CHUNK
        for number in range(count + 1):
            if number < count:
                connection.sendall(made[number % CHUNKS])
            if number > 0:
                acknowledged.read(4 * CHUNK)


def cpu_s(*roots: psutil.Process) -> float:
    """CPU seconds of processes with all their children, those that have ended included."""
    total = 0.0
    for root in roots:
        own = root.cpu_times()
        total += own.user + own.system
        for child in root.children(recursive=True):
            try:
                times = child.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system + times.children_user + times.children_system
    return total


def measured(read: Callable[[], None], rows: int, java: psutil.Process, store: psutil.Process) -> Figures:
    def now() -> tuple[float, float, float]:
        own = java.cpu_times()
        together = cpu_s(java)
        return together, together - own.user - own.system, cpu_s(store)

    before, began = now(), time.monotonic()
    read()
    took = time.monotonic() - began
    used = [(after - earlier) * MILLION / rows for after, earlier in zip(now(), before, strict=True)]
    return Figures(*(round(seconds, 3) for seconds in used), round(rows / took))


def reads(spark: SparkSession, url: str, parquet: Path, columns: str) -> dict[str, Callable[[], None]]:
    """Both ways to the same rows."""

    def journal() -> None:
        source = spark.read.format("brookmq").option("servers", url)
        (source.option("columns", columns) if columns else source).load().write.format("noop").mode("overwrite").save()

    def files() -> None:
        rows = spark.read.parquet(str(parquet))
        (rows.select(*columns.split(",")) if columns else rows).write.format("noop").mode("overwrite").save()

    return {"brookmq": journal, "parquet": files}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", default=5 * MILLION, show_default=True, type=click.IntRange(CHUNK))
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1))
@click.option("--shards", default=4, show_default=True, type=click.IntRange(1, 12))
@click.option("--burst", default=10, show_default=True, type=click.IntRange(1), help="Messages of a device in a row.")
@click.option("--columns", default="", help="Only these, in both.")
@click.option("--master", default="local[2,2]", show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(rows: int, rounds: int, shards: int, burst: int, columns: str, master: str, as_json: bool) -> None:
    """Measure reads of the journal against reads of Parquet files."""
    rows -= rows % CHUNK
    results: dict[str, list[Figures]] = {"brookmq": [], "parquet": []}
    with tempfile.TemporaryDirectory(prefix="brookmq-bench-") as name, node(Path(name), shards) as running:
        began = time.monotonic()
        publish(running.mqtt_port, rows, burst)
        click.echo(f"{rows:,} rows published, {rows / (time.monotonic() - began):,.0f} a second", err=True)
        spark = session(master, spark__local__dir=f"{name}/spark")
        machine = spark.sparkContext._jvm  # noqa: SLF001 - there is no other way to ask it
        assert machine is not None
        java = psutil.Process(machine.java.lang.ProcessHandle.current().pid())
        parquet = Path(name) / "parquet"
        spark.read.format("brookmq").option("servers", running.url).load().write.parquet(str(parquet))
        stored = spark.read.parquet(str(parquet)).count()
        if stored != rows:
            raise click.ClickException(f"{stored:,} rows came out of the journal, {rows:,} went in")
        ways = reads(spark, running.url, parquet, columns)
        for read in ways.values():
            read()  # once for the compilers
        for number in range(rounds):
            for way, read in ways.items():
                results[way].append(measured(read, rows, java, running.store()))
                click.echo(f"round {number + 1}, {way}: {results[way][-1]}", err=True)
        spark.stop()
    ratios = [ours.spark_cpu_s / theirs.spark_cpu_s for ours, theirs in zip(*results.values(), strict=True)]
    if as_json:
        click.echo(json.dumps({way: [asdict(one) for one in figures] for way, figures in results.items()}))
    for way, figures in results.items():
        cpu, python, store, speed = (
            median(getattr(one, name) for one in figures)
            for name in ("spark_cpu_s", "python_cpu_s", "store_cpu_s", "rows_per_s")
        )
        parts = f"{python:.2f} of it in Python; the store {store:.2f}"
        click.echo(f"{way}: {cpu:.2f} s of CPU per million rows ({parts}), {speed:,.0f} rows/s")
    click.echo(f"ratio {median(ratios):.2f} (at most {TARGET:g})")
    sys.exit(0 if median(ratios) <= TARGET else 1)


if __name__ == "__main__":
    main()
