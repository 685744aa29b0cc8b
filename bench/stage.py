"""What a scenario of several steps works with: brokers that keep their data, the load tool, metrics, and the disk."""

from __future__ import annotations

import re
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.brokers import Broker, BrokerError, Running
from bench.tool import LOAD_TIMEOUT_S, Report, run_tool

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Stage:
    """One broker's turn in a scenario."""

    broker: Broker
    duration_s: float
    warm_up_s: float
    pinned: bool
    cpu: int | None
    mqtt_version: str
    scale: float = 1.0
    """1 for the sizes that the targets are about; less to see that everything works."""

    def size(self, full: int, multiple_of: int = 1) -> int:
        """A number of sessions or messages, as large as this run has them."""
        return max(round(full * self.scale / multiple_of), 1) * multiple_of

    def start(self, folder: Path | None = None) -> AbstractContextManager[Running]:
        return self.broker.running(cpu=self.cpu, durable=True, folder=folder)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A place that outlives the broker's process, for scenarios with a restart in them."""
        with tempfile.TemporaryDirectory(prefix="brookmq-bench-") as name:
            yield Path(name)

    def tool(self, running: Running, *arguments: object, timeout_s: float = LOAD_TIMEOUT_S) -> Report:
        """One step; an error when messages were lost."""
        where = ["--port", str(running.port), "--broker-pid", str(running.pid), "--mqtt-version", self.mqtt_version]
        words = [str(argument) for argument in arguments]
        report = run_tool([*words, *where], pinned=self.pinned, timeout_s=timeout_s)
        if report["lost"]:
            raise BrokerError(f"{' '.join(words)}: {report['lost']:,} messages lost")
        return report

    def timed(self) -> tuple[object, ...]:
        return "--duration", self.duration_s, "--warm-up", self.warm_up_s


def metric(running: Running, name: str) -> float:
    """A figure of BrookMQ's own metrics page."""
    with urllib.request.urlopen(f"http://127.0.0.1:{running.http_port}/metrics", timeout=30) as answer:
        page: str = answer.read().decode()
    found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", page, re.MULTILINE)
    if found is None:
        raise BrokerError(f"the metrics have no {name}")
    return float(found.group(1))


def bytes_on_disk(folder: Path, stream: str) -> int:
    """Size of all files of the streams whose name begins so, as the file system has them."""
    return sum(
        path.stat().st_size
        for found in folder.rglob("*")
        if found.name.lower().startswith(stream) and found.is_dir()
        for path in found.rglob("*")
        if path.is_file()
    )
