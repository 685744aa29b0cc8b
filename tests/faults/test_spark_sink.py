"""The sink of Spark when the driver dies: each row once at a subscriber with QoS 2."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.sink_driver import ROWS_PER_BATCH
from tests.harness.raw import Client
from tests.harness.wire import Property
from tests.spark.journal_node import JournalNode

KEPT = [(Property.SESSION_EXPIRY, 10_000), (Property.RECEIVE_MAXIMUM, 1000)]
RUN_S = 900.0  # one life of a driver: some ten seconds on a machine that has nothing else to do
ROOT = Path(__file__).parents[2]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[JournalNode]:
    node = JournalNode(tmp_path / "node")
    yield node
    node.stop()


def run_driver(journal: JournalNode, folder: Path, deaths: list[str]) -> int:
    """One life of the driver; its exit code."""
    command = [sys.executable, "-m", "tests.faults.sink_driver", journal.url, str(folder), ",".join(deaths)]
    with (folder / "driver.log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        try:
            return process.wait(RUN_S)
        finally:
            process.kill()
            process.wait()


def die_through(journal: JournalNode, folder: Path, deaths: list[str]) -> None:
    folder.mkdir()
    count = (len(deaths) + 1) * ROWS_PER_BATCH
    journal.publish_all((f"in/{number % 7}", b"%d" % number) for number in range(count))
    with Client(journal.node.mqtt).connect("kept", clean=False, props=KEPT) as client:
        client.subscribe("out/#", qos=2)
    lives = 0
    while run_driver(journal, folder, deaths) != 0:
        lives += 1
        died = sorted(int(path.name.removeprefix("died-")) for path in folder.glob("died-*"))
        assert died == list(range(lives)), (folder / "driver.log").read_text()[-5000:]
    assert lives == len(deaths)
    with Client(journal.node.mqtt).connect("kept", clean=False, props=KEPT) as client:
        assert sorted(map(int, client.take_payloads(count))) == list(range(count))
        client.expect_nothing()


def test_a_driver_that_dies(journal: JournalNode, tmp_path: Path) -> None:
    die_through(journal, tmp_path / "driver", ["commit"])


@pytest.mark.long
def test_a_driver_that_dies_twenty_times_between_write_and_commit(journal: JournalNode, tmp_path: Path) -> None:
    die_through(journal, tmp_path / "driver", ["commit"] * 20)


@pytest.mark.long
def test_a_driver_that_dies_in_the_middle_of_writes(journal: JournalNode, tmp_path: Path) -> None:
    die_through(journal, tmp_path / "driver", ["write"] * 6)
