"""The token bucket of a listener, and the count of what fits."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from brookmq.base.errors import ConfigError, InvariantError
from brookmq.edge.context import ListenerContext
from brookmq.edge.limits import PAUSE_SECONDS_MIN, Capacity, ConnectRate
from brookmq.edge.open_files import RESERVED_FILES, OpenFiles, raise_open_files


def test_a_burst_of_one_second_is_let_in_then_it_pauses() -> None:
    rate = ConnectRate(100, now=0.0)
    assert all(rate.take(0.0) == 0.0 for _ in range(99))
    assert rate.take(0.0) == PAUSE_SECONDS_MIN


def test_debt_is_paid_by_a_longer_pause() -> None:
    rate = ConnectRate(10, now=0.0)
    pauses = [rate.take(0.0) for _ in range(30)]
    assert pauses[-1] == pytest.approx(2.1)
    assert rate.take(pauses[-1]) > 0.0  # the token that was waited for


@pytest.mark.parametrize("connections_per_second", [1, 7, 50, 1000])
def test_the_rate_holds_over_time(connections_per_second: int) -> None:
    rate, now, taken = ConnectRate(connections_per_second, now=0.0), 0.0, 0
    while now < 20.0:
        taken += 1
        now += rate.take(now)
    assert connections_per_second * 19 <= taken <= connections_per_second * 21 + 1


def test_a_quiet_time_fills_one_second_and_no_more() -> None:
    rate = ConnectRate(5, now=0.0)
    assert [rate.take(1000.0) > 0 for _ in range(5)] == [False] * 4 + [True]


def test_a_clock_that_does_not_move_gives_nothing() -> None:
    rate = ConnectRate(1, now=5.0)
    assert rate.take(5.0) == 1.0
    assert rate.take(4.0) == 2.0


def test_counts_of_a_listener_and_of_the_node() -> None:
    capacity = Capacity(2)
    one, other = ListenerContext("one", "tcp", "", capacity), ListenerContext("other", "ws", "", capacity)
    found = []
    for context in (one, other):
        found.append(capacity.exhausted)
        context.opened()
    assert [*found, capacity.exhausted] == [False, False, True]
    one.closed()
    assert (one.connections, other.connections, capacity.in_use) == (0, 1, 1)
    with pytest.raises(InvariantError):
        one.closed()


def test_the_limit_of_open_files_is_raised_to_what_is_allowed() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, {0}))\n"
        "from brookmq.edge.open_files import raise_open_files\n"
        "found = raise_open_files({1}); print(found.limit, found.connections)\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    for wanted, expected in ((None, 600), (500, 500), (100, 256)):
        output = subprocess.run(
            [sys.executable, "-c", program.format(600, wanted)], capture_output=True, text=True, check=True
        ).stdout
        assert output.split() == [str(expected), str(expected - RESERVED_FILES), str(expected)]
    assert (soft, hard) == resource.getrlimit(resource.RLIMIT_NOFILE)


def test_more_open_files_than_the_system_allows_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1024))

    def refuse(*_: object) -> object:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    with pytest.raises(ConfigError, match=r"edge\.open_files: 5,000 open files are more than .* \(1,024\)"):
        raise_open_files(5000)


def test_it_says_how_many_connections_fit() -> None:
    assert str(OpenFiles(65_536, 65_408)) == "65,536 open files: room for 65,408 connections"
