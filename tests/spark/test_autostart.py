"""``pipeline.autostart``: a node with a pipeline of its own, from its start to its end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.spark.journal_node import JournalNode

WAIT_S = 180.0
CONFIG = '[pipeline]\nautostart = true\nmaster = "local[1,2]"\n'


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WAIT_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
    return found


def pipeline_processes(node: JournalNode) -> list[psutil.Process]:
    found = [
        one for one in psutil.Process(node.node.process.pid).children() if {"pipeline", "run"} <= set(one.cmdline())
    ]
    return found + [below for one in found for below in one.children(recursive=True)]


def test_a_node_keeps_a_pipeline_running(tmp_path: Path) -> None:
    node = JournalNode(tmp_path, shards=1, config=CONFIG)
    with httpx.Client(base_url=f"{node.url}/api/v1", timeout=WAIT_S, trust_env=False) as api:
        table = {"kind": "bronze", "filter": ["sensors/#"], "path": str(tmp_path / "raw"), "format": "parquet"}
        assert api.put("/tables/raw", json=table).json()["state"] == "waiting for a pipeline"
        until(lambda: api.get("/tables/raw").json()["state"] == "running")
        assert api.get("/pipeline/status").json()["master"] == "local[1,2]"
        assert json.loads(api.get("/alarms").text) == []
        node.publish_all((f"sensors/{number}", b"x") for number in range(10))
        until(lambda: api.get("/tables/raw").json()["statistics"]["passed"] == 10)
        processes = pipeline_processes(node)
        assert any("java" in one.name() for one in processes)
        assert (tmp_path / "data" / "pipeline").is_dir()
    node.stop()
    _, alive = psutil.wait_procs(processes, timeout=WAIT_S)
    assert alive == []
