"""Rules of a real node, looked at by a real Spark: written, tried, refused, kept; and nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pytest
from click.testing import CliRunner, Result

from brookmq.ops.ctl import ctl
from tests.harness.node import Node

WAIT_S = 120.0
SQL = 'SELECT payload.temp::double AS t, topic FROM "sensors/#" WHERE payload.temp > 30'
SLOW = "SELECT regexp_like(payload, '^(([a-z])+.)+[A-Z]([a-z])+$') AS x FROM \"a\""


class RuleNode(Node):
    def ctl(self, *arguments: str) -> Result:
        url = f"http://127.0.0.1:{self.http[1]}"
        return CliRunner().invoke(ctl, [*arguments], env={"BROOKMQ_URL": url})

    def done(self, *arguments: str) -> str:
        result = self.ctl(*arguments)
        assert result.exit_code == 0, f"{result.output}\n{self.log()}"
        return result.output

    def checkers(self) -> list[psutil.Process]:
        """The checker, and all that it started, such as its JVM."""
        found: list[psutil.Process] = []
        for one in psutil.Process(self.process.pid).children():
            with suppress(psutil.NoSuchProcess):  # it ends while it is looked at
                if any("brookmq.spark.checker" in word for word in one.cmdline()):
                    found += [one, *one.children(recursive=True)]
        return found


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WAIT_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return found


def await_end(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=WAIT_S)
    assert alive == []


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., RuleNode]]:
    nodes: list[RuleNode] = []

    def make(folder: str = "node", config: str = "") -> RuleNode:
        nodes.append(RuleNode(tmp_path / folder, f"[journal]\nshards = 1\n{config}"))
        return nodes[-1]

    yield make
    for node in nodes:
        if node.process.poll() is None:
            node.stop()


def test_rules_from_first_to_last(start: Callable[..., RuleNode], tmp_path: Path) -> None:
    node = start()
    assert node.checkers() == []
    action = '{"type": "republish", "topic": "hot/${topic}"}'
    assert node.done("rules", "create", "hot", "--sql", SQL, "--action", action) == "created\n"
    before = node.checkers()
    assert any("java" in one.name() for one in before)
    tried = node.done("rules", "test", "hot", "-m", 'sensors/1={"temp": 31.5}', "-m", 'sensors/2={"temp": 3}', "--json")
    assert json.loads(tried)["rows"] == [{"t": 31.5, "topic": "sensors/1"}]

    for hostile, place in (
        ("SELECT * FROM csv.`/etc/passwd`", "line 1, column 19"),
        ("SELECT reflect('java.lang.Runtime', 'getRuntime') AS x FROM \"a\"", "line 1, column 8"),
        ('SELECT topic FROM "a"; DROP TABLE x', "line 1, column 22"),
        ('SELECT t FROM (SELECT topic AS t FROM "a")', "line 1, column 16"),
    ):
        refused = node.ctl("rules", "create", "bad", "--sql", hostile)
        assert refused.exit_code == 1
        assert place in refused.output
    refused = node.ctl("rules", "create", "bad", "--sql", SQL, "--action", action.replace("${topic}", "${t}"))
    assert "the column t is double; a topic takes texts" in refused.output
    assert before[0] == node.checkers()[0], "one process for all of it"

    asked: list[Result] = []
    many = [word for number in range(300) for word in ("-m", f"a={'a' * 200}!{number}")]
    asking = Thread(target=lambda: asked.append(node.ctl("rules", "test", "--sql", SLOW, *many)), daemon=True)
    asking.start()
    java = next(one for one in before if "java" in one.name())
    busy = java.cpu_times().user
    until(lambda: java.cpu_times().user > busy + 0.5)
    before[0].kill()
    asking.join(WAIT_S)
    assert "the rule checker ended in the middle of the question (signal SIGKILL)" in asked[0].output
    await_end(before)
    assert node.done("rules", "check", "--sql", SQL).splitlines()[1:] == ["t\tdouble", "topic\tstring"]
    after = node.checkers()
    assert after

    backup = tmp_path / "backup.brookmq"
    node.done("resources", "create", "db", "--type", "postgresql", "--set", "uri=postgresql://me:hush@host/db")
    node.done("tables", "create", "raw", "--kind", "bronze", "--path", "tables/raw")
    node.done("schemas", "create", "reading", "--kind", "csv", "--set", "fields=temp double")
    node.done("data", "export", str(backup))
    names = {kind: node.done(kind, "list") for kind in ("rules", "resources", "tables", "schemas")}

    os.kill(node.process.pid, signal.SIGKILL)
    await_end(after)
    node.kill()
    again = start()
    assert {kind: again.done(kind, "list") for kind in names} == names, "kept"
    assert again.stop() == 0

    other = start("other")
    assert "\nhot\t" not in other.done("rules", "list")
    other.done("data", "import", str(backup))
    assert {kind: other.done(kind, "list") for kind in names} == names, "in a backup"


def test_a_checker_that_nobody_asks_rests(start: Callable[..., RuleNode]) -> None:
    node = start(config='[pipeline]\nchecker_idle = "1s"\n')
    assert "line 1, column 1" in node.ctl("rules", "check", "--sql", "SELEC").output
    until(lambda: "the rule checker rests" in node.log())
    until(lambda: not node.checkers())


@pytest.mark.long
def test_a_stop_of_the_node_ends_the_checker(start: Callable[..., RuleNode]) -> None:
    node = start()
    node.done("rules", "check", "--sql", SQL)
    left = node.checkers()
    assert any("java" in one.name() for one in left)
    assert node.stop() == 0
    await_end(left)
