"""Exactly once: processes are killed while messages come, and every place of the journal is in the tables once.

Killed are the driver, its Java, workers of Python, the node and the store. The publisher sends again what was not
acknowledged, so a value can have two places in the journal; what is counted is places.
"""

from __future__ import annotations

import itertools
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow.dataset as ds
import pytest

from tests.harness.node import free_port
from tests.spark.journal_node import JournalNode
from tests.spark.pipeline.pipeline_process import PipelineProcess, ask, await_, delta_rows

DEVICES = 20
PART = 1000  # messages that are published again if one of them is not acknowledged
STARTS_MAX = 5  # of a node; its port may be taken by somebody else for a moment
KINDS = ("driver", "java", "worker", "store", "node")
LISTENERS = """
[http]
bind = "127.0.0.1:{http}"
[listeners.main]
bind = "127.0.0.1:{mqtt}"
"""
RULE = 'SELECT CAST(payload.v AS BIGINT) AS v, published_at, partition, offset FROM "s/#"'


class Place:
    """A node that comes back on its ports, a publisher, a pipeline, and the tables that it writes."""

    def __init__(self, folder: Path, messages: int) -> None:
        self.folder = folder
        self.messages = messages
        self.lake = folder / "lake"
        self.config = LISTENERS.format(http=free_port(), mqtt=free_port())
        self.node = self._start_node()
        self.published = 0
        self.allowed = 0  # to be published by now
        self.change = threading.Condition()
        self.publisher = threading.Thread(target=self._publish)
        self._declare()
        self.publisher.start()
        self.pipeline = self._start_pipeline()

    def _start_node(self) -> JournalNode:
        for _ in range(STARTS_MAX - 1):
            with suppress(AssertionError):
                return JournalNode(self.folder / "node", config=self.config)
        return JournalNode(self.folder / "node", config=self.config)

    def _start_pipeline(self, *arguments: str) -> PipelineProcess:
        return PipelineProcess(self.node.url, self.folder / "pipeline", *arguments)

    def _declare(self) -> None:
        for kind in ("bronze", "gold_last"):
            document = {"kind": kind, "path": str(self.lake / kind), "filter": ["s/#"]}
            ask(self.node.url, "PUT", f"/tables/{kind}", document)
        actions = [
            {"type": "delta", "path": str(self.lake / "rule")},
            {"type": "parquet", "path": str(self.lake / "files")},
        ]
        ask(self.node.url, "PUT", "/rules/all", {"sql": RULE, "actions": actions})

    def _publish(self) -> None:
        while self.published < self.messages:
            with self.change:
                self.change.wait_for(lambda: self.allowed > self.published)
            if self.allowed > self.messages:
                return
            part = range(self.published, self.published + PART)
            try:
                self.node.publish_all((f"s/{value % DEVICES}", b'{"v": %d}' % value) for value in part)
            except (OSError, EOFError, AssertionError):  # a node that was killed; it is asked again
                time.sleep(0.1)
                continue
            self.published += PART

    def allow(self, messages: int) -> None:
        with self.change:
            self.allowed = messages
            self.change.notify_all()

    def strike(self, kind: str, chance: random.Random) -> None:
        if kind == "node":
            self.node.node.kill()
            self.node = self._start_node()
        elif kind == "store":
            with suppress(psutil.Error):
                self.node.store.kill()
        else:
            found = victims(self.pipeline, kind)
            if found:
                with suppress(psutil.NoSuchProcess):
                    chance.choice(found).kill()
        if kind in ("driver", "java"):
            self.pipeline.stop(signal.SIGKILL if kind == "driver" else signal.SIGTERM)

    def go_on(self) -> None:
        """A pipeline that was killed is started again, as whoever runs it would."""
        if self.pipeline.process.poll() is not None:
            self.pipeline = self._start_pipeline()

    def finish(self) -> None:
        """All is published, and all that there is comes to the tables."""
        self.allow(self.messages)
        self.publisher.join()
        if self.pipeline.process.poll() is None:
            self.pipeline.stop()
        self.pipeline = self._start_pipeline("--once")
        assert self.pipeline.wait() == 0, self.pipeline.told()

    def close(self) -> None:
        self.allow(self.messages + 1)
        if self.pipeline.process.poll() is None:
            self.pipeline.stop(signal.SIGKILL)
        self.publisher.join()
        self.node.node.kill()

    def check(self) -> None:
        ends = self.node.ends()
        expected = {(shard, offset) for shard, end in ends.items() for offset in range(end)}
        assert len(expected) >= self.messages
        files = ds.dataset(self.lake / "files", format="parquet", partitioning="hive").to_table().to_pylist()
        tables = {"bronze": delta_rows(self.lake / "bronze"), "rule": delta_rows(self.lake / "rule"), "files": files}
        for name, rows in tables.items():
            places = Counter((row["partition"], row["offset"]) for row in rows)
            missing, strange = expected - places.keys(), places.keys() - expected
            twice = [place for place, count in places.items() if count > 1]
            print(f"{name}: {len(places):,} places, {len(missing)} missing, {len(twice)} twice, {len(strange)} strange")
            assert not missing | strange, (name, sorted(missing)[:10], sorted(strange)[:10])
            assert not twice, (name, twice[:10])
        assert {row["v"] for row in tables["rule"]} == set(range(self.messages))
        self._check_last(tables["bronze"])

    def _check_last(self, bronze: list[dict[str, Any]]) -> None:
        """The last value of a device is what came last in the journal, which can be one that was sent again."""
        newest: dict[str, tuple[int, bytes]] = {}
        for row in bronze:
            newest[row["topic"]] = max(newest.get(row["topic"], (-1, b"")), (row["offset"], row["payload"]))
        last = {row["topic"]: row["payload"] for row in delta_rows(self.lake / "gold_last")}
        assert {topic: text.replace(":", ": ") for topic, text in last.items()} == {
            topic: payload.decode() for topic, (_, payload) in newest.items()
        }


def victims(pipeline: PipelineProcess, kind: str) -> list[psutil.Process]:
    driver = psutil.Process(pipeline.process.pid)
    if kind == "driver":
        return [driver]
    found = []
    for child in driver.children(recursive=True):
        with suppress(psutil.Error):
            line = " ".join(child.cmdline())
            is_java = "org.apache.spark" in line
            is_worker = "pyspark.daemon" in line or "python_streaming_source_runner" in line
            if (is_java and kind == "java") or (is_worker and kind == "worker"):
                found.append(child)
    return found


def kill_through(folder: Path, messages: int, kinds: list[str]) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}, {messages:,} messages, killed: {' '.join(kinds)}")
    chance = random.Random(seed)
    place = Place(folder, messages)
    try:
        for share, kind in enumerate(kinds, 1):
            place.go_on()
            place.allow(messages * share // len(kinds))
            await_batch(place.pipeline, batches(place.pipeline))
            time.sleep(chance.uniform(0.0, 3.0))  # somewhere in a batch, or between two
            print(f"{share}: {kind}, {place.published:,} published, {batches(place.pipeline)} batches", flush=True)
            place.strike(kind, chance)
        place.finish()
        place.check()
    finally:
        place.close()


def batches(pipeline: PipelineProcess) -> int:
    """How many batches it has finished, of all queries."""
    return sum(query["batch"] + 1 for query in pipeline.queries.values())


def await_batch(pipeline: PipelineProcess, finished: int) -> None:
    """Until it has finished more than these."""
    await_(lambda: batches(pipeline) > finished, pipeline.told)


def in_turn(count: int) -> Iterator[str]:
    return itertools.islice(itertools.cycle(KINDS), count)


def test_every_row_is_there_once(tmp_path: Path) -> None:
    kill_through(tmp_path, 20_000, ["store", "driver"])


@pytest.mark.long
def test_every_row_is_there_once_after_many_kills(tmp_path: Path) -> None:
    kill_through(tmp_path, 1_000_000, list(in_turn(40)))
