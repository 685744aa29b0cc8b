"""The picture of made-up results: it is drawn, whatever they are."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from demo.fleet import ENERGY, KINDS, TEMPERATURE, Measuring, devices
from demo.picture import DPI, SIZE_INCHES, draw
from demo.results import DeviceResult, Results, Sample, Window
from matplotlib import rcParams
from matplotlib.image import imread


def made_up(count: int) -> Results:
    dice = random.Random(3)
    measuring = Measuring(count)
    found = [
        DeviceResult(one.client_id, one.kind, one.x, one.y, 30, 30, measuring.value(one, 30.0), 0)
        for one in devices(count)
    ]
    rates = {"temperature": 700, "energy": 400, "door": 25}
    windows = [
        Window(10.0 * at, kind, 7000, mean + dice.random(), mean - 6, mean + 8)
        for at in range(4)
        for kind, mean in ((TEMPERATURE, 22), (ENERGY, 2))
    ]
    names = ["rule/alarms", "rule/windows", "table/bronze", "table/silver", "table/gold_last", "table/gold_minute"]
    samples = [
        Sample(0.5 * at, 560 * at, {name: dice.randrange(2500) if at < 60 else 0 for name in names}) for at in range(74)
    ]
    seconds = {kind: [round(rates[kind] * dice.uniform(0.93, 1.05)) for _ in range(31)] for kind in KINDS}
    return Results(tuple(found), seconds, tuple(windows), tuple(samples), 34_871, 34_871, 2_918, 0.47, 0.93, 14.2, ())


@pytest.mark.parametrize("count", [10, 1000])
def test_it_is_drawn(tmp_path: Path, count: int) -> None:
    before = dict(rcParams)
    draw(made_up(count), tmp_path / "picture.png")
    assert dict(rcParams) == before
    pixels = imread(tmp_path / "picture.png")
    assert pixels.shape[:2] == (SIZE_INCHES[1] * DPI, SIZE_INCHES[0] * DPI)
    assert len({tuple(pixel) for pixel in pixels[::7, ::7].reshape(-1, pixels.shape[2])}) > 100


def test_a_device_that_is_missing_is_a_hole(tmp_path: Path) -> None:
    full = made_up(1000)
    draw(full, tmp_path / "full.png")
    draw(replace(full, devices=full.devices[:500] + full.devices[501:]), tmp_path / "hole.png")
    assert (imread(tmp_path / "full.png") != imread(tmp_path / "hole.png")).any()


def test_nothing_to_draw(tmp_path: Path) -> None:
    nothing = Results((), {kind: [] for kind in KINDS}, (), (), 0, 0, 0, 0.0, 0.0, 0.0, ("30 readings are missing",))
    draw(nothing, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000
