"""From a command to its first rows: `brookmq pipeline run`; programs with the cache, without it, by Spark's scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

from deltalake import DeltaTable

from bench.spark.journal import Publisher, node
from bench.spark.results import Figures, Say

TIME_LIMIT_S: Final = 120.0
LOOK_S: Final = 0.05
MESSAGES: Final = 10
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
        for number in range(rounds):
            figures = {"pipeline_s": round(_pipeline_s(running.url, folder / f"pipeline-{number}", publisher), 2)}
            figures |= {
                f"{way}_s": round(_first_rows_s(running.url, folder / f"checkpoint-{way}-{number}", variables), 2)
                for way, variables in WAYS.items()
            }
            found.append(figures)
            say(f"round {number + 1}, start: {figures}")
        publisher.close()
    return {"start": found}


def _pipeline_s(url: str, folder: Path, publisher: Publisher) -> float:
    """Until a rule's rows are in its Delta table. It begins with what is published after it was made."""
    table = str(folder / "table")
    rule = {"sql": 'SELECT payload, topic FROM "bench/#"', "actions": [{"type": "delta", "path": table}]}
    _ask(url, "PUT", f"/rules/{folder.name}", rule)
    for number in range(MESSAGES):
        publisher.one("bench/start", b"%d" % number)
    command = [sys.executable, "-m", "brookmq", "pipeline", "run", "--servers", url, "--data-dir", str(folder)]
    command += ["--master", "local[2,2]"]
    began = time.monotonic()
    environment = {**os.environ, **WAYS["cache"]}
    nothing = subprocess.DEVNULL
    with subprocess.Popen(command, env=environment, stdin=nothing, stdout=nothing, stderr=nothing) as process:
        try:
            while not DeltaTable.is_deltatable(table) or not DeltaTable(table).to_pyarrow_table().num_rows:
                if process.poll() is not None or time.monotonic() - began > TIME_LIMIT_S:
                    raise RuntimeError(f"the pipeline has no rows, exit code {process.poll()}")
                time.sleep(LOOK_S)
            return time.monotonic() - began
        finally:
            process.terminate()
            process.wait(TIME_LIMIT_S)
            _ask(url, "DELETE", f"/rules/{folder.name}", None)


def _ask(url: str, method: str, path: str, body: object) -> None:
    content = None if body is None else json.dumps(body).encode()
    request = Request(f"{url}/api/v1{path}", content, {"Content-Type": "application/json"}, method=method)
    with urlopen(request, timeout=TIME_LIMIT_S):
        pass


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
