"""The loads of the side-by-side run, each with the figure to reach. What they mean is told in docs/performance.md."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import Final

from bench import durable
from bench.durable import Procedure


class Kind(Enum):
    """Which table a scenario belongs to, and so which of its figures count."""

    MESSAGES = "messages"
    WILDCARDS = "wildcards"
    CONNECT = "connect"
    LATENCY = "latency"
    MEMORY = "memory"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Target:
    """One figure of a scenario of several steps, and what BrookMQ is to reach in it; some have no limit."""

    figure: str
    label: str
    limit: float | None = None
    at_least: bool = False
    """The limit is the least, not the most."""
    relative: bool = False
    """What counts is the figure divided by Mosquitto's."""
    form: str = ",.0f"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One load: the arguments of ``brookmq bench``, and what BrookMQ is to reach."""

    key: str
    title: str
    kind: Kind
    arguments: tuple[str, ...]
    ratio_max: Fraction | None = None
    """CPU per message (or per connect), at most this part of Mosquitto's."""
    needs_tls: bool = False
    rounds_min: int = 1
    rounds_max: int = 1000
    procedure: Procedure | None = None
    """Several steps instead of one load; then ``targets`` say which of its figures count."""
    targets: tuple[Target, ...] = ()
    remarks: tuple[tuple[str, str, str], ...] = ()
    """What the figures do not tell and a reader has to know: what, for Mosquitto, for BrookMQ."""
    brokers: tuple[str, ...] = ("mosquitto", "brookmq")

    def rounds(self, asked: int) -> int:
        return min(max(asked, self.rounds_min), self.rounds_max)

    def timed(self, duration_s: float, warm_up_s: float) -> tuple[str, ...]:
        return (*self.arguments, "--duration", str(duration_s), "--warm-up", str(warm_up_s))


def _messages(key: str, title: str, command: str, ratio_max: Fraction | None = None) -> list[Scenario]:
    return [Scenario(key, title, Kind.MESSAGES, tuple(command.split()), ratio_max)]


def _by_qos(key: str, title: str, command: str, targets: dict[int, Fraction]) -> list[Scenario]:
    return [
        Scenario(
            f"{key}-{qos}",
            f"{title}, QoS {qos}",
            Kind.MESSAGES,
            (*command.split(), "--qos", str(qos)),
            targets.get(qos),
        )
        for qos in (0, 1, 2)
    ]


WILDCARD_COUNTS: Final = (1_000, 10_000, 100_000)
LATENCY_RATES: Final = (1_000, 10_000)
IDLE_CONNECTIONS: Final = 10_000
IDLE_TLS_CONNECTIONS: Final = 2_000
"""Fewer, because ten thousand handshakes take minutes and tell the same."""
IDLE_BYTES_MAX: Final = 6 * 1024
LATENCY_P50_RATIO_MAX: Final = Fraction(13, 10)
LATENCY_P99_RATIO_MAX: Final = Fraction(2)
LATENCY_ROUNDS: Final = 5
SEEN_GROWTH_MAX: Final = 1.5
SEEN_GROWTH_US_MAX: Final = 1.0
NEW_GROWTH_MAX: Final = 4.0


def _idle(key: str, transport: str, count: int, *, tls: bool) -> Scenario:
    arguments = ("conn", "--connections", str(count), "--session", "--keep-alive", "60", *(("--tls",) if tls else ()))
    title = f"{count:,} idle connections, {transport}"
    return Scenario(key, title, Kind.MEMORY, arguments, needs_tls=tls, rounds_max=3)


def _kept(
    key: str,
    title: str,
    procedure: Procedure,
    *targets: Target,
    remarks: tuple[tuple[str, str, str], ...] = (),
    ours_only: bool = False,
    rounds_max: int = 1000,
) -> Scenario:
    return Scenario(
        key,
        title,
        Kind.KEPT,
        (),
        rounds_max=rounds_max,
        procedure=procedure,
        targets=targets,
        remarks=remarks,
        brokers=("brookmq",) if ours_only else ("mosquitto", "brookmq"),
    )


def _at_least(figure: str, label: str, limit: float, form: str = ",.0f", *, relative: bool = False) -> Target:
    return Target(figure, label, limit, at_least=True, relative=relative, form=form)


AWAY_PER_S_MIN: Final = 50_000
AWAY_CPU_RATIO_MAX: Final = 0.5
KEPT_EXTRA_US_MAX: Final = {1: 2.5, 2: 8.0}
JOURNAL_BYTES_MAX: Final = 300
DRAINED_PER_S_MIN: Final = 100_000
NEEDLES_BACK_S_MAX: Final = 1.0
NEEDLES_READ_PERCENT_MAX: Final = 1.0
READY_S_MAX: Final = 5.0
READY_GROWTH_MAX: Final = 1.5
FIRST_CONNECT_S_MAX: Final = 1.0

KEPT_SCENARIOS: Final = (
    _kept(
        "store-away",
        "QoS 1 to 100 sessions that are away",
        durable.away,
        _at_least("messages_per_s", "messages/s", AWAY_PER_S_MIN),
        _at_least("messages_per_s", "messages/s, against Mosquitto", 1.0, ".2f", relative=True),
        Target("cpu_us", "CPU s/million", form=".2f"),
        Target("cpu_us", "CPU, against Mosquitto", AWAY_CPU_RATIO_MAX, relative=True, form=".2f"),
        remarks=(
            ("acknowledged when", "in memory", "synced to disk"),
            ("a crash loses of what is acknowledged", "all since the last save, up to 30 minutes", "nothing"),
        ),
    ),
    *(
        _kept(
            f"store-kept-{qos}",
            f"100 pairs, connected kept sessions, QoS {qos}",
            partial(durable.kept, qos=qos),
            Target("messages_per_s", "messages/s"),
            Target("transient_us", "CPU s/million, sessions not kept", form=".2f"),
            Target("kept_us", "CPU s/million, kept", form=".2f"),
            Target("extra_us", "difference, µs per message", limit, form=".2f"),
        )
        for qos, limit in KEPT_EXTRA_US_MAX.items()
    ),
    _kept(
        "store-growth",
        "1,000 messages/s to connected kept sessions",
        durable.growth,
        Target("journal_bytes_per_message", "bytes of journal per message", JOURNAL_BYTES_MAX),
        Target("sessions_bytes_per_message", "bytes of session log per message"),
        Target("p99_ms", "latency p99, ms", form=".2f"),
        Target("cpu_us", "CPU s/million", form=".2f"),
        ours_only=True,
    ),
    _kept(
        "store-drain",
        "100,000 messages wait for one session",
        durable.drain,
        _at_least("drained_per_s", "messages/s on its return", DRAINED_PER_S_MIN),
        _at_least("drained_after_restart_per_s", "messages/s, the broker restarted meanwhile", DRAINED_PER_S_MIN),
        Target("drained_cpu_us", "CPU s/million", form=".2f"),
    ),
    _kept(
        "store-wave",
        "10,000 sessions come back at once, 10 messages for each",
        durable.wave,
        Target("wave_s", "seconds until all have all", form=".2f"),
        Target("wave_tried_again", "connects reset and tried again"),
        Target("quiet_p99_ms", "p99 of others before, ms", form=".2f"),
        Target("wave_p99_ms", "p99 of others meanwhile, ms", form=".2f"),
        Target("wave_p99_of_allowed", "as part of three times that or 20 ms", 1.0, form=".2f"),
        rounds_max=3,
    ),
    _kept(
        "store-needles",
        "10 messages missed among 10,000,000 for 100,000 other filters",
        durable.needles,
        Target("back_s", "seconds until all are there", NEEDLES_BACK_S_MAX, form=".3f"),
        Target("read_percent", "% of the journal read for it", NEEDLES_READ_PERCENT_MAX, form=".3f"),
        Target("back_after_restart_s", "seconds, the node restarted meanwhile", NEEDLES_BACK_S_MAX, form=".3f"),
        Target("read_percent_after_restart", "% read, restarted", NEEDLES_READ_PERCENT_MAX, form=".3f"),
        ours_only=True,
        rounds_max=1,
    ),
    _kept(
        "store-start",
        "start with 1,000,000 stored sessions",
        durable.start,
        Target("ready_few_s", "seconds to the ready line with 10,000", form=".2f"),
        Target("ready_many_s", "seconds to the ready line", READY_S_MAX, form=".2f"),
        Target("ready_growth", "against 10,000 sessions", READY_GROWTH_MAX, form=".2f"),
        Target("first_connect_s", "seconds from there to the first CONNACK", FIRST_CONNECT_S_MAX, form=".3f"),
        ours_only=True,
        rounds_max=1,
    ),
)


SCENARIOS: Final[tuple[Scenario, ...]] = (
    *_by_qos("fan-in", "fan-in, 50 publishers", "fan-in", {0: Fraction(1, 12), 1: Fraction(1, 12)}),
    *_by_qos("pairs", "100 pairs", "pairs", {0: Fraction(1, 8), 1: Fraction(1, 10), 2: Fraction(1, 14)}),
    *_by_qos("fan-out", "fan-out 1:100", "fan-out", {0: Fraction(1, 20), 1: Fraction(1, 8)}),
    *_by_qos("shared", "shared group, 50 to 10", "shared", {}),
    *_messages("single-0", "fan-in, 50 publishers, one packet per write, QoS 0", "single", Fraction(9, 10)),
    *_messages("single-1", "fan-in, 50 publishers, one packet per write, QoS 1", "single --qos 1"),
    *(
        Scenario(
            f"wildcards-{count}-{'new' if new else 'seen'}",
            f"{count:,} filters, {'new topics' if new else 'topics seen before'}",
            Kind.WILDCARDS,
            ("wildcards", "--filters", str(count), *(("--new-topics",) if new else ())),
        )
        for new in (False, True)
        for count in WILDCARD_COUNTS
    ),
    Scenario("connect", "connect and disconnect", Kind.CONNECT, ("conn", "--churn", "32"), Fraction(3, 2)),
    *(
        Scenario(
            f"latency-{rate}",
            f"{rate:,} messages/s, QoS 1, 10 pairs",
            Kind.LATENCY,
            ("pairs", "--pairs", "10", "--qos", "1", "--rate", str(rate)),
            rounds_min=LATENCY_ROUNDS,
        )
        for rate in LATENCY_RATES
    ),
    _idle("idle", "TCP", IDLE_CONNECTIONS, tls=False),
    _idle("idle-tls", "TLS", IDLE_TLS_CONNECTIONS, tls=True),
    *KEPT_SCENARIOS,
)


def chosen(only: tuple[str, ...]) -> list[Scenario]:
    """The scenarios whose key begins with one of the names; all without names."""
    if not only:
        return list(SCENARIOS)
    for name in only:
        if not any(scenario.key.startswith(name) for scenario in SCENARIOS):
            known = ", ".join(scenario.key for scenario in SCENARIOS)
            raise ValueError(f"no scenario begins with {name!r}; there are {known}")
    return [scenario for scenario in SCENARIOS if scenario.key.startswith(only)]
