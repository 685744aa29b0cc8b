"""What came out, read from the tables that the pipeline wrote, and whether it is right.

Right means: each reading of each device is in the table of readings exactly once, the table of last values has all
devices with their last reading, and the windows have counted every message.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable

from demo.fleet import GREETING, HOT_CELSIUS, KINDS, TEMPERATURE, Device
from demo.node_api import ALARMS, WINDOW_S, WINDOWS

BRONZE: Final = "bronze"
SILVER: Final = "silver"
GOLD_LAST: Final = "gold_last"
GOLD_MINUTE: Final = "gold_minute"
SHOWN_PROBLEMS_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class DeviceResult:
    """One device, with its last reading and how many of its readings raised an alarm."""

    client_id: str
    kind: str
    x: int
    y: int
    messages: int
    last: int
    value: float
    alarms: int


@dataclass(frozen=True, slots=True)
class Window:
    """All readings of a kind in a few seconds; ``start_s`` since the devices began to speak."""

    start_s: float
    kind: str
    readings: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Sample:
    """The pipeline at a moment since the devices began to speak: what was sent, and what each query has not read."""

    at_s: float
    sent: int
    lag: dict[str, int]


@dataclass(frozen=True, slots=True)
class Story:
    """What the demo saw while it ran. ``sent``: readings by device; ``alarms``: that came back by MQTT;
    ``alarm_delays_s``: from device to subscriber."""

    sent: Mapping[str, int]
    began_at: float  # unix time at which the greetings were over
    spoken_s: float
    samples: Sequence[Sample]
    alarms: int
    alarm_delays_s: Sequence[float]
    set_up_s: float


@dataclass(frozen=True, slots=True)
class Results:
    """Everything in the picture."""

    devices: tuple[DeviceResult, ...]
    seconds: dict[str, list[int]]  # messages in each second, by kind
    windows: tuple[Window, ...]
    samples: tuple[Sample, ...]
    messages: int
    raw_rows: int
    alarms: int
    alarm_p50_s: float
    alarm_p95_s: float
    set_up_s: float
    problems: tuple[str, ...]

    def write(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self), indent=1, allow_nan=False) + "\n")


def rows(folder: Path, name: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a table; none while it is not there."""
    if not DeltaTable.is_deltatable(str(folder / name)):
        return []
    found: list[dict[str, Any]] = DeltaTable(str(folder / name)).to_pyarrow_table(columns=list(columns)).to_pylist()
    return found


def is_complete(folder: Path, sent: int, hot: int) -> bool:
    """Whether the tables have as much as so many readings, of which some are hot, should leave in them."""
    return (
        _count(folder, WINDOWS, "readings") >= sent
        and _count(folder, GOLD_LAST, "n") >= sent  # a device's last number is how many it has sent
        and len(rows(folder, SILVER, ["n"])) >= sent
        and len(rows(folder, BRONZE, ["offset"])) >= sent
        and len(rows(folder, ALARMS, ["n"])) >= hot
    )


def _count(folder: Path, name: str, column: str) -> int:
    return sum(row[column] for row in rows(folder, name, [column]))


def read_results(folder: Path, members: Sequence[Device], story: Story) -> Results:
    found = rows(folder, SILVER, ["client_id", "n", "kind", "value", "published_at"])
    readings = [row for row in found if row["n"] is not None]  # without the clock
    last = {row["client_id"]: row for row in rows(folder, GOLD_LAST, ["client_id", "n", "value"]) if row["n"]}
    alarms = Counter(row["client_id"] for row in rows(folder, ALARMS, ["client_id"]))
    counted = Counter((row["client_id"], row["n"]) for row in readings)
    hot = Counter(row["client_id"] for row in readings if row["kind"] == TEMPERATURE and row["value"] > HOT_CELSIUS)
    per_device = Counter(client_id for client_id, _ in counted)
    windows = rows(folder, WINDOWS, ["start", "kind", "readings", "mean", "low", "high"])
    delays_s = sorted(story.alarm_delays_s)
    return Results(
        devices=tuple(
            DeviceResult(
                device.client_id,
                device.kind,
                device.x,
                device.y,
                per_device[device.client_id],
                last[device.client_id]["n"],
                last[device.client_id]["value"],
                alarms[device.client_id],
            )
            for device in members
            if device.client_id in last
        ),
        seconds=_per_second(readings, story),
        windows=tuple(
            Window(
                row["start"].timestamp() - story.began_at,
                row["kind"],
                row["readings"],
                row["mean"],
                row["low"],
                row["high"],
            )
            for row in sorted(windows, key=lambda row: row["start"])
            if row["start"].timestamp() > story.began_at - WINDOW_S  # without greetings
        ),
        samples=tuple(story.samples),
        messages=sum(story.sent.values()),
        raw_rows=len(rows(folder, BRONZE, ["offset"])),
        alarms=alarms.total(),
        alarm_p50_s=_percentile(delays_s, 0.5),
        alarm_p95_s=_percentile(delays_s, 0.95),
        set_up_s=story.set_up_s,
        problems=tuple(_problems(members, story, counted, last, windows, alarms, hot)),
    )


def _per_second(readings: Sequence[Mapping[str, Any]], story: Story) -> dict[str, list[int]]:
    """Whole seconds alone."""
    counted = Counter(
        (row["kind"], math.floor(row["published_at"].timestamp() - story.began_at))
        for row in readings
        if row["n"] > GREETING
    )
    return {kind: [counted[kind, second] for second in range(int(story.spoken_s))] for kind in KINDS}


def _percentile(ordered: Sequence[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


def _problems(
    members: Sequence[Device],
    story: Story,
    counted: Counter[tuple[str, int]],
    last: Mapping[str, Mapping[str, Any]],
    windows: Sequence[Mapping[str, Any]],
    alarms: Counter[str],
    hot: Counter[str],
) -> list[str]:
    """What is not as it should be, as sentences."""
    found = []
    expected = {(device, number) for device, count in story.sent.items() for number in range(1, count + 1)}
    missing, strange = expected - set(counted), set(counted) - expected
    twice = [key for key, count in counted.items() if count > 1]
    for title, keys in (("are missing", missing), ("are there more than once", twice), ("were never sent", strange)):
        if keys:
            shown = ", ".join(f"{device} {number}" for device, number in sorted(keys)[:SHOWN_PROBLEMS_MAX])
            found.append(f"{len(keys)} readings {title}: {shown}")
    wrong = [one.client_id for one in members if last.get(one.client_id, {}).get("n") != story.sent[one.client_id]]
    if wrong:
        found.append(
            f"{len(wrong)} devices are not there with their last reading: {', '.join(wrong[:SHOWN_PROBLEMS_MAX])}"
        )
    in_windows = sum(row["readings"] for row in windows)
    if in_windows != len(expected):
        found.append(f"the windows have {in_windows} of {len(expected)} readings")
    if alarms != hot:
        found.append(f"{hot.total()} readings are hot, and {alarms.total()} alarms are in their table")
    if alarms.total() != story.alarms:
        found.append(f"{alarms.total()} alarms are in the table, and {story.alarms} came by MQTT")
    return found
