"""What the demo finds in the tables, and what it finds wrong with them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from demo.fleet import KINDS, TEMPERATURE, devices
from demo.results import Results, Sample, Story, is_complete, read_results

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MEMBERS = devices(10)
SENT = {device.client_id: 3 for device in MEMBERS}
HOT = [device.client_id for device in MEMBERS if device.kind == TEMPERATURE][:2]


def readings() -> list[dict[str, Any]]:
    return [
        {
            "client_id": device.client_id,
            "n": number,
            "kind": device.kind,
            "value": 30.0 if device.client_id in HOT and number == 3 else 1.0,
            "published_at": NOON + timedelta(seconds=number),
            "offset": 10 * at + number,
        }
        for at, device in enumerate(MEMBERS)
        for number in range(1, 4)
    ]


def write(folder: Path, silver: Sequence[Mapping[str, Any]], **others: Sequence[Mapping[str, Any]]) -> None:
    last = [row for row in silver if row["n"] == 3]
    counted: dict[str, list[float]] = {}
    for row in silver:
        counted.setdefault(row["kind"], []).append(row["value"])
    windows = [
        {"start": NOON, "kind": kind, "readings": len(values), "mean": sum(values) / len(values), "low": min(values),
         "high": max(values)}
        for kind, values in counted.items()
    ]  # fmt: skip
    alarms = [{"client_id": device, "n": 3} for device in HOT]
    tables = {"bronze": silver, "silver": silver, "gold_last": last, "windows": windows, "alarms": alarms, **others}
    for name, rows in tables.items():
        write_deltalake(str(folder / name), pa.Table.from_pylist(list(rows)))


def read(folder: Path, **changes: Any) -> Results:
    samples = [Sample(0.5, 10, {"rule/alarms": 4}), Sample(1.0, 30, {"rule/alarms": 0})]
    story = {"sent": SENT, "samples": samples, "alarms": 2, "alarm_delays_s": [0.2, 0.4], "set_up_s": 9.0, **changes}
    return read_results(folder, MEMBERS, Story(began_at=NOON.timestamp(), spoken_s=4.5, **story))


def test_everything_is_right(tmp_path: Path) -> None:
    write(tmp_path, readings())
    assert is_complete(tmp_path, 30, 2)
    results = read(tmp_path)
    assert results.problems == ()
    assert [one.client_id for one in results.devices] == [device.client_id for device in MEMBERS]
    assert {(one.messages, one.last) for one in results.devices} == {(3, 3)}
    assert {one.client_id for one in results.devices if one.alarms} == set(HOT)
    assert (results.messages, results.raw_rows, results.alarms) == (30, 30, 2)
    assert (results.alarm_p50_s, results.alarm_p95_s) == (0.4, 0.4)
    assert {kind: sum(counts) for kind, counts in results.seconds.items()} == {
        kind: 2 * sum(device.kind == kind for device in MEMBERS) for kind in KINDS
    }
    assert sum(one.readings for one in results.windows) == 30


def test_the_figures_are_written_as_json(tmp_path: Path) -> None:
    write(tmp_path, readings())
    read(tmp_path).write(tmp_path / "figures.json")
    found = json.loads((tmp_path / "figures.json").read_text())
    assert {one["client_id"] for one in found["devices"]} == set(SENT)
    assert found["problems"] == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda rows: rows[:-3] + rows[-2:], f"1 readings are missing: {MEMBERS[-1].client_id} 1"),
        (lambda rows: [*rows, rows[4]], "1 readings are there more than once: energy-0001 2"),
        (lambda rows: [*rows, {**rows[0], "n": 4}], "1 readings were never sent: temperature-0000 4"),
        (lambda rows: rows[:-1], f"1 devices are not there with their last reading: {MEMBERS[-1].client_id}"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, change: Any, problem: str) -> None:
    write(tmp_path, change(readings()))
    assert problem in read(tmp_path).problems


def test_windows_and_alarms_are_compared_with_the_readings(tmp_path: Path) -> None:
    window = {"start": NOON, "kind": "door", "readings": 29, "mean": 0.0, "low": 0.0, "high": 0.0}
    write(tmp_path, readings(), windows=[window], alarms=[{"client_id": HOT[0], "n": 3}])
    assert read(tmp_path, alarms=1).problems == (
        "the windows have 29 of 30 readings",
        "2 readings are hot, and 1 alarms are in their table",
    )
    assert "1 alarms are in the table, and 2 came by MQTT" in read(tmp_path).problems
    assert not is_complete(tmp_path, 30, 1)


def test_no_tables_at_all(tmp_path: Path) -> None:
    assert not is_complete(tmp_path, 30, 0)
    results = read(tmp_path)
    assert results.devices == ()
    assert results.problems[0].startswith("30 readings are missing")
