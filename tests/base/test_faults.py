"""Fault points: counted across kill -9, killed at the ordered hit, and nothing at all without the environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from brookmq.base import faults
from brookmq.base.errors import OperationError
from brookmq.base.faults import BOUNDS, BREAKS, ENVIRONMENT, POINTS, Ledger, Victim

HITTING = """
from brookmq.base import faults
assert faults.armed
for _ in range(5):
    faults.hit("journal.stored")
faults.hit("state.append")
"""
WITH_A_STORE = """
import subprocess, sys
from brookmq.base import faults
store = subprocess.Popen([sys.argv[1], "60"])
while open(f"/proc/{store.pid}/comm").read().strip() != "nats-server":
    pass
faults.hit("journal.append")
print(store.wait(10), flush=True)
"""


def run(path: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, ENVIRONMENT: str(path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def sleeper(tmp_path: Path) -> str:
    """A child that looks like a store."""
    program = tmp_path / "nats-server"
    program.symlink_to("/bin/sleep")
    return str(program)


def test_nothing_is_armed_without_the_environment() -> None:
    assert not faults.armed
    faults.hit("journal.append")
    assert not faults.broken("dedup_off")


def test_hits_are_counted_over_processes(path: Path) -> None:
    ledger = Ledger.create(path)
    for _ in range(2):
        assert run(path, HITTING).returncode == 0
    assert {name: count for name, count in ledger.hits().items() if count} == {"journal.stored": 10, "state.append": 2}
    assert not any(ledger.fired().values())


def test_the_node_dies_at_the_ordered_hit_and_not_again(path: Path) -> None:
    ledger = Ledger.create(path)
    ledger.order("journal.stored", Victim.NODE, after=3)
    assert run(path, HITTING).returncode == -signal.SIGKILL
    assert ledger.hits()["journal.stored"] == 3
    assert ledger.hits()["state.append"] == 0
    assert ledger.fired()["journal.stored"] == 1
    assert run(path, HITTING).returncode == 0
    assert ledger.hits()["journal.stored"] == 8


def test_orders_count_from_now_on_and_can_be_withdrawn(path: Path) -> None:
    ledger = Ledger.create(path)
    run(path, HITTING)
    ledger.order("journal.stored", Victim.NODE, after=2)
    assert run(path, HITTING).returncode == -signal.SIGKILL
    assert ledger.hits()["journal.stored"] == 7
    ledger.order("journal.stored", Victim.NODE)
    ledger.withdraw()
    assert run(path, HITTING).returncode == 0


def test_the_store_dies_and_the_node_lives(path: Path, sleeper: str) -> None:
    ledger = Ledger.create(path)
    ledger.order("journal.append", Victim.STORE)
    ended = run(path, WITH_A_STORE, sleeper)
    assert (ended.returncode, ended.stdout.strip()) == (0, str(-signal.SIGKILL)), ended.stderr
    assert ledger.fired()["journal.append"] == 1


def test_without_a_store_of_its_own_nobody_dies(path: Path) -> None:
    ledger = Ledger.create(path)
    ledger.order("journal.stored", Victim.STORE)
    assert run(path, HITTING).returncode == 0
    assert ledger.fired()["journal.stored"] == 0


def test_both_die(path: Path, sleeper: str) -> None:
    ledger = Ledger.create(path)
    ledger.order("journal.append", Victim.BOTH)
    ended = run(path, WITH_A_STORE, sleeper)  # returns when stdout is closed by the child, too
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, "")


def test_breaks_are_seen(path: Path) -> None:
    Ledger.create(path, "dedup_off")
    program = "from brookmq.base import faults\nprint([name for name in faults.BREAKS if faults.broken(name)])"
    assert run(path, program).stdout.strip() == "['dedup_off']"


def test_bounds_are_lowered_where_the_ledger_says_so(path: Path) -> None:
    program = 'from brookmq.base import faults\nprint(faults.bound("table.tail_records", 8192))'
    assert faults.bound("table.tail_records", 8192) == 8192
    Ledger.create(path)
    assert run(path, program).stdout.strip() == "8192"
    Ledger.create(path, bounds={"table.tail_records": 50})
    assert run(path, program).stdout.strip() == "50"


def test_a_path_that_is_no_ledger_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"short")
    for path in (tmp_path / "none", tmp_path / "other"):
        with pytest.raises(OperationError, match="no ledger"):
            Ledger(path)
        assert "is no ledger of fault points" in run(path, HITTING).stderr


def test_every_point_and_break_says_what_it_is() -> None:
    assert all(text.endswith(".") for text in (*POINTS.values(), *BREAKS.values(), *BOUNDS.values()))
    assert len(POINTS) == 13
    assert len(BREAKS) == 4
