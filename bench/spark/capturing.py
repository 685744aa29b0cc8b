"""What capturing everything costs the broker: the same loads on a node that captures and on one that does not."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.spark.journal import node
from bench.spark.results import Figures, Say
from bench.tool import run_tool

SHARDS: Final = 4
# A publisher has 20 messages under way. Fifty of them wait for the disk and not for the processor; five hundred do not.
LOADS: Final = {
    "capture-pairs-1": ("pairs", "-n", "500", "--qos", "1"),
    "capture-fan-in-1": ("fan-in", "-n", "500", "--qos", "1"),
    "capture-few-1": ("fan-in", "-n", "50", "--qos", "1"),
    "capture-fan-in-0": ("fan-in", "-n", "50", "--qos", "0"),
}
WAYS: Final = {"nothing": "", "everything": "#"}


def capture_rounds(
    folder: Path, duration_s: float, warm_up_s: float, rounds: int, pinned: bool, say: Say
) -> dict[str, list[Figures]]:
    """By load, CPU of node and store per message both ways, and the difference."""
    found: dict[str, list[Figures]] = {key: [] for key in LOADS}
    for number in range(rounds):
        for key, load in LOADS.items():
            figures: Figures = {}
            for way, capture in WAYS.items():
                with node(folder / f"{key}-{way}-{number}", SHARDS, capture) as running:
                    timed = ["--duration", str(duration_s), "--warm-up", str(warm_up_s)]
                    where = ["--port", str(running.mqtt_port), "--broker-pid", str(running.process.pid)]
                    report = run_tool([*load, *timed, *where], pinned=pinned)
                figures[f"{way}_us"] = round(report["broker_cpu_us_per_message"], 3)
                figures[f"{way}_messages_per_s"] = round(report["messages_per_s"])
                figures[f"{way}_lost"] = report["lost"]
            figures["extra_us"] = round(figures["everything_us"] - figures["nothing_us"], 3)
            found[key].append(figures)
            say(f"round {number + 1}, {key}: {figures}")
    return found
