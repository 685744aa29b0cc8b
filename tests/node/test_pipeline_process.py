"""A pipeline that a node keeps running: started again, told about, ended with the node, and never against another."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from brookmq.base.alarms import Alarms
from brookmq.base.config import Config
from brookmq.base.pipeline_status import PipelineStatus
from brookmq.node import pipeline_process as pipeline_process_module
from brookmq.node.pipeline_health import PipelineHealth
from brookmq.node.pipeline_process import ALARM, PipelineProcess, own_url, pipeline_folder
from tests.node.child_programs import DEADLINE_S, is_running, program, wait_until_gone

RUNS = """
import json, os, pathlib, sys, time
with pathlib.Path(__file__).with_name("runs").open("a") as runs:
    runs.write(json.dumps([os.getpid(), *sys.argv[1:]]) + "\\n")
time.sleep(600)
"""
FAILS = RUNS.replace("time.sleep(600)", "sys.exit('no Java here')")


class World:
    def __init__(self, folder: Path, text: str, **options: Any) -> None:
        self.folder = folder
        self.alarms = Alarms()
        self.health = PipelineHealth()
        config = Config.model_validate({"node": {"data_dir": str(folder / "data")}, "pipeline": {"autostart": True}})
        options.setdefault("installed", lambda: True)
        options.setdefault("pause_s_min", 0.02)
        self.process = PipelineProcess(config, self.alarms, self.health, program(folder, text), **options)

    def runs(self) -> list[list[Any]]:
        file = self.folder / "runs"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():  # noqa: ASYNC110 - a process tells nobody
            await asyncio.sleep(0.005)

    def report(self) -> None:
        told = {"id": str(uuid4()), "master": "m", "application": "a", "started_at": 1.0}
        self.health.tell(PipelineStatus.model_validate(told))


def run(world: Callable[[], World], test: Callable[[World], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(2 * DEADLINE_S):
            made = world()
            made.process.begin("127.0.0.1:18083")
            try:
                await test(made)
            finally:
                await made.process.stop()

    asyncio.run(bounded())


def test_it_runs_and_runs_again(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.until(lambda: len(world.runs()) == 1)
        pid, *arguments = world.runs()[0]
        assert pid == world.process.pid
        assert arguments == [
            "--servers",
            "http://127.0.0.1:18083",
            "--master",
            "local[*,4]",
            "--data-dir",
            str(tmp_path / "data" / "pipeline"),
            "--rows-per-batch",
            "100000",
        ]
        assert world.alarms.active() == []
        os.kill(pid, signal.SIGKILL)
        await world.until(lambda: len(world.runs()) == 2)
        (alarm,) = world.alarms.active()
        assert (alarm.name, alarm.message) == (ALARM, "the pipeline does not run: it ended with signal SIGKILL")
        world.report()
        assert world.alarms.active() == [], "it is there"
        assert is_running(world.runs()[1][0])

    made: list[World] = []

    def world() -> World:
        made.append(World(tmp_path, RUNS))
        return made[0]

    run(world, test)
    wait_until_gone(*(pid for pid, *_ in made[0].runs()))


def test_what_it_says_at_its_end_is_in_the_alarm_and_it_is_tried_ever_less_often(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.until(lambda: world.process.starts == 3)
        (alarm,) = world.alarms.active()
        assert alarm.message == "the pipeline does not run: it ended with exit code 1: no Java here"

    run(lambda: World(tmp_path, FAILS), test)


def test_it_waits_while_somebody_else_runs_one(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while loop.time() < began + 10 * 0.2:
            world.report()
            await asyncio.sleep(0.01)
        assert world.runs() == []
        await world.until(world.runs)

    run(lambda: World(tmp_path, RUNS, pause_s_min=0.2), test)


def test_without_spark_there_is_an_alarm(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.until(world.alarms.active)
        (alarm,) = world.alarms.active()
        assert "Spark is not installed" in alarm.message
        assert world.runs() == []

    run(lambda: World(tmp_path, RUNS, installed=lambda: False), test)


def test_a_stop_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_process_module, "STOP_S", 0.1)
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + RUNS

    async def test(world: World) -> None:
        await world.until(world.runs)
        await world.process.stop()
        wait_until_gone(world.runs()[0][0])

    run(lambda: World(tmp_path, deaf), test)


def test_where_it_asks_the_node() -> None:
    assert own_url("127.0.0.1:18083") == "http://127.0.0.1:18083"
    assert own_url("0.0.0.0:18083") == "http://127.0.0.1:18083"
    assert own_url("[::]:18083") == "http://[::1]:18083"


def test_where_it_keeps_things(tmp_path: Path) -> None:
    given = Config.model_validate({"pipeline": {"data_dir": str(tmp_path)}})
    assert pipeline_folder(given) == tmp_path
    assert pipeline_folder(Config()) == Path("data/pipeline").absolute()
