"""The simulated devices."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from demo.fleet import DOOR, ENERGY, HOT_CELSIUS, KINDS, TEMPERATURE, Measuring, devices, grid, payload


@pytest.mark.parametrize("count", [10, 37, 200, 1000])
def test_every_device_has_a_name_and_a_room_of_its_own(count: int) -> None:
    found = devices(count)
    columns, rows = grid(count)
    assert len({one.client_id for one in found}) == len({one.topic for one in found}) == count
    assert len({(one.x, one.y) for one in found}) == count
    assert all(0 <= one.x < columns and 0 <= one.y < rows for one in found)


def test_all_kinds_are_there() -> None:
    counted = Counter(one.kind for one in devices(1000))
    assert counted == {TEMPERATURE: 700, ENERGY: 200, DOOR: 100}
    assert set(Counter(one.kind for one in devices(10))) == set(KINDS)


def test_what_is_measured_is_the_same_for_the_same_seed_and_has_alarms_in_it() -> None:
    found = devices(200)
    one, other = Measuring(200), Measuring(200)
    values = [one.value(device, 3.0) for device in found]
    assert values == [other.value(device, 3.0) for device in found]
    hot = [value for device, value in zip(found, values, strict=True) if device.kind == TEMPERATURE]
    assert any(value > HOT_CELSIUS for value in hot)
    assert any(value < HOT_CELSIUS for value in hot)
    assert all(one.pause_s(device) > 0 for device in found)


def test_a_reading_says_what_it_has_to() -> None:
    device = devices(10)[1]
    assert json.loads(payload(device, 7, 1.25)) == {"n": 7, "kind": ENERGY, "value": 1.25, "x": 1, "y": 0}
    assert device.topic == "campus/building1/energy/energy-0001"
