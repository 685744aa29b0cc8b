"""From the start of a program to its first rows: with the cache, without it, and started by Spark's own scripts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from bench.spark.journal import Publisher, node
from bench.spark.results import Figures, Say

TIME_LIMIT_S: Final = 120.0
WAYS: Final = {
    "cache": {"BROOKMQ_JVM_CACHE": "use"},
    "no_cache": {"BROOKMQ_JVM_CACHE": "off"},
    "scripts": {"BROOKMQ_JVM_CACHE": "off", "SPARK_SUBMIT_OPTS": "-Dbrookmq.bench=1"},  # not plain: left to Spark
}
PROGRAM: Final = """
import sys, os
from brookmq.spark import session
url, checkpoint = sys.argv[1:]
spark = session("local[2,2]")
def sink(rows, batch):
    if rows.count():
        print("rows", flush=True)
        sys.stdin.read()
stream = spark.readStream.format("brookmq").options(servers=url, startingPosition="earliest").load()
query = stream.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint).start()
query.awaitTermination()
"""


def start_rounds(folder: Path, rounds: int, say: Say) -> dict[str, list[Figures]]:
    """Seconds from the command to the first batch in the sink."""
    from brookmq.spark.warming import main as make_cache

    make_cache.main([], standalone_mode=False)
    found: list[Figures] = []
    with node(folder / "node", 2) as running:
        publisher = Publisher(running.mqtt_port)
        for number in range(10):
            publisher.one("bench/start", b"%d" % number)
        publisher.close()
        for number in range(rounds):
            figures = {
                f"{way}_s": round(_first_rows_s(running.url, folder / f"checkpoint-{way}-{number}", variables), 2)
                for way, variables in WAYS.items()
            }
            found.append(figures)
            say(f"round {number + 1}, start: {figures}")
    return {"start": found}


def _first_rows_s(url: str, checkpoint: Path, variables: dict[str, str]) -> float:
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url, str(checkpoint)],
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != b"rows\n":
                raise RuntimeError(f"the program ended with {process.wait(TIME_LIMIT_S)} and has no rows")
            return time.monotonic() - began
        finally:
            process.kill()
