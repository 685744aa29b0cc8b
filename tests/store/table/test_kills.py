"""A writer and its store, killed at each fault point: the next start finds all that was done, in order."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from brookmq.base.faults import ENVIRONMENT, Ledger, Victim
from brookmq.store.table.opening import open_table
from tests.store.log_servers import Servers, linked, run, until
from tests.store.table.owners import Owner
from tests.store.table.writer import CHANGES, LIMITS, changes

POINTS = ("state.append", "state.stored", "snapshot.write", "snapshot.purge")
States = dict[bytes, bytes]


class Rounds:
    """One table through many writers."""

    def __init__(self, folder: Path) -> None:
        self.servers = Servers(folder, 1, "", "2GB")
        self.ledger = Ledger.create(folder / "ledger")
        self.states: States = {}
        self._folder = folder

    def play(self, seed: int, point: str, victim: Victim, after: int) -> None:
        """A writer in which somebody is killed at a point; then what is there is compared."""
        self.ledger.withdraw()
        self.ledger.order(point, victim, after)
        environment = {**os.environ, ENVIRONMENT: str(self._folder / "ledger")}
        command = [sys.executable, "-m", "tests.store.table.writer", str(self._folder / "0.conf")]
        command += [str(self.servers.ports[0]), str(seed)]
        writer = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
        for pid in map(int, writer.stdout.split()):  # a store whose writer was killed has nobody to end it
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        done = writer.stderr.count(b".")
        if writer.returncode not in (0, -signal.SIGKILL) or writer.stderr.strip(b"."):
            raise AssertionError(writer.stderr.decode())
        if writer.returncode == 0:
            assert done == CHANGES
        found = self.read()
        self.states = self.explain(found, seed, done)

    def read(self) -> States:
        found: States = {}

        async def read() -> None:
            async with linked(self.servers) as link:
                table = await open_table(link, "things", limits=LIMITS)
                owner = Owner(table)
                table.begin_loading()
                await until(lambda: table.all_loaded, "all is loaded")
                found.update(owner.states)
                await table.close()

        self.servers.start()
        try:
            run(read())
        finally:
            self.servers.end()
        return found

    def explain(self, found: States, seed: int, done: int) -> States:
        """The states are those after so many changes: at least after those that were done."""
        states = dict(self.states)
        following = changes(seed)
        for key, value in islice(following, done):
            assign(states, key, value)
        for key, value in following:
            if states == found:
                return found
            assign(states, key, value)
        assert states == found, f"{done} changes were done, and no number of them leads to what was found"
        return found


def assign(states: States, key: bytes, value: bytes) -> None:
    if value:
        states[key] = value
    else:
        states.pop(key, None)


def play_rounds(folder: Path, seed: int, count: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    rounds = Rounds(folder)
    try:
        for number in range(count):
            point, victim = POINTS[number % len(POINTS)], list(Victim)[number // len(POINTS) % len(Victim)]
            rounds.play(seed * 1_000 + number, point, victim, chance.choice([1, 2, 3, 7, 20]))
    finally:
        rounds.servers.close()
    fired = {point: rounds.ledger.fired()[point] for point in POINTS}
    print(f"hits {rounds.ledger.hits()}, kills {fired}")
    assert all(times >= count // len(POINTS) for times in fired.values()), fired


def test_nothing_that_was_done_is_lost(tmp_path: Path) -> None:
    play_rounds(tmp_path, seed=1, count=len(POINTS) * len(Victim))


@pytest.mark.long
def test_nothing_that_was_done_is_lost_in_many_kills(tmp_path: Path) -> None:
    play_rounds(tmp_path, seed=2, count=20 * len(POINTS) * len(Victim))


def test_the_checker_would_notice(tmp_path: Path) -> None:
    rounds = Rounds.__new__(Rounds)
    rounds.states = {}
    full: States = {}
    for key, value in changes(9):
        assign(full, key, value)
    assert rounds.explain(full, 9, CHANGES) == full
    lost = dict(full)
    lost.popitem()
    with pytest.raises(AssertionError, match="no number of them"):
        rounds.explain(lost, 9, CHANGES)
