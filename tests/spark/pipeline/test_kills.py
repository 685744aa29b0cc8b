"""Exactly once: the driver, its Java and its workers are killed while messages come, and every row is there once."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import psutil
import pyarrow.dataset as ds
import pytest

from tests.spark.journal_node import JournalNode
from tests.spark.pipeline.pipeline_process import PipelineProcess, ask, await_, delta_rows

MESSAGES = 40_000
KILLS = 6
DEVICES = 20


def messages_of(part: int) -> list[tuple[str, bytes]]:
    first = part * 1000
    return [(f"s/{number % DEVICES}", b'{"v": %d}' % number) for number in range(first, first + 1000)]


def victims(pipeline: PipelineProcess) -> dict[str, list[psutil.Process]]:
    driver = psutil.Process(pipeline.process.pid)
    found: dict[str, list[psutil.Process]] = {"driver": [driver]}
    for child in driver.children(recursive=True):
        try:
            line = " ".join(child.cmdline())
        except psutil.Error:
            continue
        if "org.apache.spark" in line:
            found.setdefault("java", []).append(child)
        elif "pyspark.daemon" in line or "python_streaming_source_runner" in line:
            found.setdefault("worker", []).append(child)
    return found


@pytest.mark.long
def test_every_row_is_there_once(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    node = JournalNode(tmp_path / "node")
    lake = tmp_path / "lake"
    for kind in ("bronze", "gold_last"):
        ask(node.url, "PUT", f"/tables/{kind}", {"kind": kind, "path": str(lake / kind), "filter": ["s/#"]})
    sql = 'SELECT CAST(payload.v AS BIGINT) AS v, published_at, partition, offset FROM "s/#"'
    actions = [{"type": "delta", "path": str(lake / "rule")}, {"type": "parquet", "path": str(lake / "files")}]
    ask(node.url, "PUT", "/rules/all", {"sql": sql, "actions": actions})

    def publish() -> None:
        for part in range(MESSAGES // 1000):
            node.publish_all(messages_of(part), client_id="d1")

    publisher = threading.Thread(target=publish)
    publisher.start()
    pipeline = PipelineProcess(node.url, tmp_path / "pipeline", "--rows-per-batch", "500")
    try:
        for _ in range(KILLS):
            await_(pipeline.has_written, pipeline.told)
            time.sleep(chance.uniform(0.0, 5.0))  # somewhere in a batch, or between two
            found = victims(pipeline)
            kind = chance.choice(sorted(found))
            chance.choice(found[kind]).kill()
            if kind != "worker":
                pipeline.stop(signal.SIGKILL if kind == "driver" else signal.SIGTERM)
                pipeline = PipelineProcess(node.url, tmp_path / "pipeline", "--rows-per-batch", "500")
        publisher.join()
        pipeline.stop()
        once = PipelineProcess(node.url, tmp_path / "pipeline", "--once")
        assert once.wait() == 0, once.told()
        check(lake)
    finally:
        if pipeline.process.poll() is None:
            pipeline.stop(signal.SIGKILL)
        publisher.join()
        node.stop()


def check(lake: Path) -> None:
    files = ds.dataset(lake / "files", format="parquet", partitioning="hive").to_table().to_pylist()
    tables = {"bronze": delta_rows(lake / "bronze"), "rule": delta_rows(lake / "rule"), "files": files}
    for name, rows in tables.items():
        places = Counter((row["partition"], row["offset"]) for row in rows)
        assert len(places) == MESSAGES, name
        assert set(places.values()) == {1}, name
    assert sorted(row["v"] for row in tables["rule"]) == list(range(MESSAGES))
    last = {row["topic"]: row["payload"] for row in delta_rows(lake / "gold_last")}
    assert last == {f"s/{device}": f'{{"v":{MESSAGES - DEVICES + device}}}' for device in range(DEVICES)}
