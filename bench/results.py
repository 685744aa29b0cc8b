"""The results file: raw reports of every round, with the machine, the versions and the command they come from.

Medians and ratios are not stored: whoever reads the file works them out, so no table can differ from the rounds.
"""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.results_file import read_results, write_results
from bench.tool import Report

RESULTS: Final = Path(__file__).parent / "results" / "side-by-side.json"

_KEPT: Final = (
    "duration_s", "sent", "received", "lost", "duplicates", "messages_per_s", "latency_ms", "connects",
    "connects_failed", "connects_per_s", "connect_latency_ms", "tool_busy", "tool_was_limit", "broker_cpu_s",
    "broker_cpu_us_per_message", "broker_cpu_us_per_connect", "broker_resident_bytes", "broker_bytes_per_connection",
    "figures",
)  # fmt: skip


@dataclass(slots=True)
class Series:
    """One scenario's reports, by broker, in the order of the rounds; with when and how they were made."""

    date: str
    command: str
    pinned: bool
    versions: dict[str, str]
    load_before: float
    """The machine's load average when the run began: what others had it do."""
    reports: dict[str, list[Report]] = field(default_factory=dict)

    def add(self, broker: str, report: Report) -> None:
        kept = {name: report[name] for name in _KEPT if report.get(name) not in (None, 0)}
        self.reports.setdefault(broker, []).append(kept)

    def figure(self, broker: str, *path: str) -> float | None:
        """The median over the rounds; None when the broker has no such figure."""
        values = [value for report in self.reports.get(broker, []) if (value := _follow(report, path)) is not None]
        return median(values) if values else None

    def lost(self, broker: str) -> bool:
        return any(report.get("lost") for report in self.reports.get(broker, []))

    def tool_was_limit(self, broker: str) -> bool:
        return any(report.get("tool_was_limit") for report in self.reports.get(broker, []))


@dataclass(slots=True)
class Results:
    machine: dict[str, str]
    series: dict[str, Series] = field(default_factory=dict)
    tool: list[Report] = field(default_factory=list)
    """The load tool alone, against its null broker."""

    def save(self, path: Path) -> None:
        write_results(asdict(self), path)

    @classmethod
    def load(cls, path: Path) -> Results:
        content = read_results(path)
        series = {key: Series(**value) for key, value in content["series"].items()}
        return cls(content["machine"], series, content["tool"])


def _follow(report: Report, path: tuple[str, ...]) -> float | None:
    value: Any = report
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return None if value is None else float(value)


def this_machine() -> dict[str, str]:
    """What a reader needs to judge the figures; nothing that names the machine."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": model,
        "cores": str(os.cpu_count()),
        "memory": f"{memory_bytes / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
    }
