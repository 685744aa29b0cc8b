"""What a load has shown, as values, as JSON and as a few lines for a reader."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Final

from brookmq.bench.latency import Percentiles

BUSY_MAX: Final = 0.9
"""Above this share of a core the tool may be what is measured, and its report says so."""
MILLION: Final = 1e6


@dataclass(slots=True)
class Report:
    """Figures of one load. Totals are of the whole run, rates and CPU of the measured part only."""

    scenario: str
    target: str
    version: int
    qos: int
    clients: int = 0
    duration_s: float = 0.0
    sent: int = 0
    acknowledged: int = 0
    received: int = 0
    expected: int = 0
    lost: int = 0
    duplicates: int = 0
    refused: int = 0
    dropped_connections: int = 0
    messages: int = 0
    """In the measured part: received, or acknowledged (QoS 1, 2) or sent (QoS 0) when nobody receives."""
    messages_per_s: float = 0.0
    latency_ms: Percentiles | None = None
    connects: int = 0
    connects_failed: int = 0
    connects_per_s: float = 0.0
    connect_latency_ms: Percentiles | None = None
    quiet_latency_ms: Percentiles | None = None
    """Of the same messages before the event whose effect on them ``latency_ms`` tells."""
    sessions_present: int | None = None
    """Connects that were told of a session that waited for them."""
    tool_cpu_s: float = 0.0
    tool_busy: float = 0.0
    broker_cpu_s: float | None = None
    broker_cpu_us_per_message: float | None = None
    """The same number as CPU seconds per million messages."""
    broker_cpu_us_per_connect: float | None = None
    broker_resident_bytes: int | None = None
    broker_bytes_per_connection: float | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def tool_was_limit(self) -> bool:
        return self.tool_busy > BUSY_MAX

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "tool_was_limit": self.tool_was_limit}

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of every figure that this load has."""
        what = f"MQTT {VERSION_NAMES[self.version]}, QoS {self.qos}, {self.clients} clients"
        rows = [("target", f"{self.target}, {what}")]
        if self.connects_per_s:
            counts = f"{self.connects:,} in all, {self.connects_failed} failed"
            rows.append(("connects", f"{counts}, {self.connects_per_s:,.0f}/s"))
            rows += _latency_row("connect latency", self.connect_latency_ms)
        if self.sessions_present is not None:
            rows.append(("sessions found", f"{self.sessions_present:,} of {self.clients:,}"))
        if self.sent or self.received:
            rows.append(("messages", self._counts()))
            rows.append(("throughput", f"{self.messages_per_s:,.0f} messages/s over {self.duration_s:.1f} s"))
        rows += _latency_row("latency before", self.quiet_latency_ms)
        rows += _latency_row("latency", self.latency_ms)
        rows += self._costs()
        rows += [("note", note) for note in self.notes]
        return rows

    def _counts(self) -> str:
        text = f"{self.sent:,} sent, {self.received:,} received"
        if self.qos:
            text += f", {self.acknowledged:,} acknowledged"
        text += f", {self.lost:,} lost"
        for name, value in (("duplicates", self.duplicates), ("refused", self.refused)):
            text += f", {value:,} {name}" if value else ""
        return text

    def _costs(self) -> list[tuple[str, str]]:
        busy = f"{self.tool_busy:.0%} of a core"
        rows = [("load tool", busy + (" — it may be the limit of these figures" if self.tool_was_limit else ""))]
        if self.broker_cpu_us_per_message is not None:
            rows.append(("broker CPU", f"{self.broker_cpu_us_per_message:.3f} s per million messages"))
        if self.broker_cpu_us_per_connect is not None:
            rows.append(("broker CPU", f"{self.broker_cpu_us_per_connect:.1f} µs per connect"))
        if self.broker_resident_bytes is not None:
            text = f"{self.broker_resident_bytes / 2**20:.1f} MiB resident"
            if self.broker_bytes_per_connection is not None:
                text += f", {self.broker_bytes_per_connection:,.0f} bytes per connection"
            rows.append(("broker memory", text))
        return rows


VERSION_NAMES: Final = {3: "3.1", 4: "3.1.1", 5: "5.0"}


def _latency_row(label: str, latency: Percentiles | None) -> list[tuple[str, str]]:
    if latency is None:
        return []
    return [(label, f"p50 {latency.p50:.3f} ms, p90 {latency.p90:.3f}, p99 {latency.p99:.3f}, max {latency.max:.3f}")]
