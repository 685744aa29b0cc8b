"""Sessions that outlive their connections: made in numbers, left alone, and taken up again.

The commands do one step each, so that a load in between can be any of the others: ``bench sessions`` makes them,
``bench pub`` publishes while they are away, ``bench back`` brings them back and counts what had waited for them. Client
ids come from a pattern and a number, so each step knows those of the steps before.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from brookmq.bench.client import Client
from brookmq.bench.engine import NANOSECONDS
from brookmq.bench.fleet import Fleet
from brookmq.bench.lifecycle import connecting_report, raise_open_file_limit
from brookmq.bench.measure import CONNECTS_PER_S_MIN, OPEN_TIMEOUT_S, QUIET_S, SLICE_S, Snapshot, nanoseconds_from_now
from brookmq.bench.packets import DISCONNECT
from brookmq.bench.progress import Progress
from brookmq.bench.report import MILLION, Report
from brookmq.bench.scenarios import padded
from brookmq.bench.settings import LoadError, Settings

AT_ONCE: Final = 64
"""Connections that are open at a time while sessions are made or discarded."""
LAST_LOOK_S: Final = 0.01
"""Without a known number of messages: how exactly the arrival of the last one is known."""
TRIES_MAX: Final = 5
"""Connects of one session before it is given up."""
FAREWELL_S: Final = 0.2
"""Between the last message and the DISCONNECT: the handshakes of QoS 2 end in it."""
SESSION_PRESENT: Final = 1


@dataclass(frozen=True, slots=True)
class Names:
    """A range of numbered sessions."""

    pattern: str
    """``%i`` is the session's number."""
    count: int
    first: int = 0

    def __iter__(self) -> Iterator[str]:
        return (self.pattern.replace("%i", str(number)) for number in self.numbers)

    @property
    def numbers(self) -> range:
        return range(self.first, self.first + self.count)


def filters_of(pattern: str, number: int, each: int, sessions: int) -> list[bytes]:
    """``%i`` is the session's number, ``%f`` that of the filter among those of all sessions."""
    named = pattern.replace("%i", str(number))
    return [
        named.replace("%f", padded(number * each + place, sessions * each)).encode()
        for place in range(each if "%f" in pattern else 1)
    ]


def make(settings: Settings, names: Names, topic_filter: str, filters_each: int, progress: Progress) -> Report:
    """Connect, subscribe and disconnect: so many sessions that wait for messages."""
    fleet = Fleet(settings)
    total = names.first + names.count
    clients = (
        fleet.client(name, filters_of(topic_filter, number, filters_each, total), kept=True)
        for number, name in zip(names.numbers, names, strict=True)
    )
    before = Snapshot.of(fleet)
    try:
        _visit(fleet, clients, names.count, progress, "sessions made")
        report = connecting_report(fleet, "sessions", before)
    finally:
        fleet.engine.close()
        progress.close()
    report.clients = names.count
    return report


def discard(settings: Settings, names: Iterable[str], progress: Progress) -> None:
    """End sessions by connecting with a clean start: nothing of them stays in the broker."""
    wanted = list(names)
    fleet = Fleet(settings)
    try:
        _visit(fleet, (fleet.client(name) for name in wanted), len(wanted), progress, "sessions ended")
    finally:
        fleet.engine.close()
        progress.close()


def _visit(fleet: Fleet, clients: Iterator[Client], count: int, progress: Progress, what: str) -> None:
    """Every client connects, does what it has to, and disconnects; made only when it is its turn."""
    engine = fleet.engine
    engine.opening_max = AT_ONCE

    def next_one(client: Client) -> None:
        client.write(DISCONNECT)
        engine.forget(client)
        following = next(clients, None)
        if following is not None:
            engine.waiting.append(following)

    engine.on_ready = next_one
    engine.open(islice(clients, AT_ONCE), fleet.settings.connect_rate_per_s)
    until = nanoseconds_from_now(OPEN_TIMEOUT_S + count / (fleet.settings.connect_rate_per_s or CONNECTS_PER_S_MIN))
    while engine.opened < count and not engine.first_failure and (now := time.monotonic_ns()) < until:
        engine.run(now + int(SLICE_S * NANOSECONDS), lambda: engine.opened >= count or bool(engine.first_failure))
        progress.show(f"{engine.opened:,} of {count:,} {what}")
    if engine.opened < count or engine.first_failure:
        reason = engine.first_failure or "the broker did not answer in time"
        raise LoadError(f"{fleet.settings.target}: {count - engine.opened} of {count} sessions failed: {reason}")


class Return:
    """Sessions on their way back, and what they have received since the first of them set out.

    A connection that ends before it was answered is tried again, as clients do: when thousands come at once, the
    kernel's queue of a listener overflows, and some are reset whatever the broker does.
    """

    def __init__(self, settings: Settings, names: Names, expected: int) -> None:
        raise_open_file_limit(names.count)
        self.fleet = Fleet(settings)
        self.expected = expected
        self.began = 0
        self.failure = ""
        self._flow = self.fleet.flow(copies=1)
        self._places = {self._client(name): (place, name) for place, name in enumerate(names)}
        self._tries = [1] * names.count
        self.fleet.others = list(self._places)
        self.fleet.engine.opening_max = names.count
        self.fleet.engine.on_dropped = self._dropped

    def _client(self, name: str) -> Client:
        client = self.fleet.client(name, kept=True)
        client.receiving = self._flow
        return client

    def _dropped(self, client: Client) -> None:
        place, name = self._places.pop(client)
        if client.inbox.connack is not None or self._tries[place] >= TRIES_MAX:
            self.failure = self.failure or client.failure
            return
        self._tries[place] += 1
        again = self._client(name)
        self._places[again] = place, name
        self.fleet.others[place] = again
        self.fleet.engine.waiting.append(again)

    @property
    def received(self) -> int:
        return self._flow.received

    def set_out(self) -> None:
        self.began = time.monotonic_ns()
        self.fleet.engine.open(self.fleet.others, self.fleet.settings.connect_rate_per_s)

    def over(self) -> bool:
        """Everyone is there and everything that was expected has come; or somebody failed."""
        engine = self.fleet.engine
        return bool(self.failure) or (engine.opened >= len(self.fleet.others) and self._flow.received >= self.expected)

    def check(self) -> None:
        """An error when somebody could not come back."""
        engine = self.fleet.engine
        missing = len(self.fleet.others) - engine.opened
        if missing or self.failure:
            reason = self.failure or engine.first_failure or "the broker did not answer in time"
            raise LoadError(f"{self.fleet.settings.target}: {missing} sessions did not come back: {reason}")

    def report(self, scenario: str, before: Snapshot, end: int) -> Report:
        """The figures of a return that was over at ``end``; CPU counts from ``before``."""
        report = connecting_report(self.fleet, scenario, before)
        report.duration_s = round(max(end - self.began, 1000) / NANOSECONDS, 6)
        report.connects_per_s = round(report.connects / report.duration_s, 1)
        report.messages = report.received = self.received
        report.expected = self.expected
        report.lost = max(self.expected - self.received, 0)
        report.duplicates = sum(client.inbox.duplicates for client in self.fleet.others)
        report.messages_per_s = round(self.received / report.duration_s, 1)
        if report.broker_cpu_s is not None and self.received:
            report.broker_cpu_us_per_message = round(report.broker_cpu_s * MILLION / self.received, 4)
        connacks = [client.inbox.connack for client in self.fleet.others]
        report.sessions_present = sum(bool(connack and connack[0] & SESSION_PRESENT) for connack in connacks)
        if report.sessions_present < len(connacks):
            report.notes.append(f"{len(connacks) - report.sessions_present:,} sessions were not there any more")
        if report.connects_failed:
            report.notes.append(
                f"{report.connects_failed:,} connects were tried again: {self.fleet.engine.first_failure}"
            )
        return report

    def leave(self) -> None:
        """Go away again, with all handshakes done."""
        self.fleet.engine.run(nanoseconds_from_now(FAREWELL_S))
        for client in self.fleet.others:
            if client.sock is not None:
                client.write(DISCONNECT)


def back(settings: Settings, names: Names, expected: int, progress: Progress) -> Report:
    """All sessions come back at once and take what waits for them: ``expected`` messages, or all until none comes."""
    returning = Return(settings, names, expected)
    engine = returning.fleet.engine
    before = Snapshot.of(returning.fleet)
    returning.set_out()
    until = nanoseconds_from_now(OPEN_TIMEOUT_S + names.count / (settings.connect_rate_per_s or CONNECTS_PER_S_MIN))
    slice_ns = int((SLICE_S if expected else LAST_LOOK_S) * NANOSECONDS)
    last, seen = time.monotonic_ns(), (0, 0)
    try:
        while not returning.failure and (now := time.monotonic_ns()) < until:
            engine.run(now + slice_ns, returning.over if expected else None)
            if seen != (engine.opened, returning.received):
                last, seen = time.monotonic_ns(), (engine.opened, returning.received)
            if (expected and returning.over()) or (engine.opened >= names.count and now - last > QUIET_S * NANOSECONDS):
                break
            progress.show(f"{engine.opened:,} sessions back, {returning.received:,} messages received")
        returning.check()
        report = returning.report("back", before, last)
        returning.leave()
    finally:
        engine.close()
        progress.close()
    return report
