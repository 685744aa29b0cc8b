"""The loads of the side-by-side run, each with the figure to reach. What they mean is told in docs/performance.md."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Final


class Kind(Enum):
    """Which table a scenario belongs to, and so which of its figures count."""

    MESSAGES = "messages"
    WILDCARDS = "wildcards"
    CONNECT = "connect"
    LATENCY = "latency"
    MEMORY = "memory"


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
