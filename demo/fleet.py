"""The simulated devices: who they are, where they stand, what they say. No sockets and no clocks in here.

They stand on a grid of rooms, one in each. Seven of ten are thermometers, two are energy meters, one watches a door.
What thermometers measure is one field over all rooms, with warm spots that wander and grow: a reading that got lost or
mixed up on its way would be a hole or a speckle in the picture.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

TEMPERATURE: Final = "temperature"
ENERGY: Final = "energy"
DOOR: Final = "door"
KINDS: Final = (TEMPERATURE, ENERGY, DOOR)
UNITS: Final = {TEMPERATURE: "°C", ENERGY: "kW", DOOR: "open"}
PERIODS_S: Final = {TEMPERATURE: 1.0, ENERGY: 0.5, DOOR: 4.0}
HOT_CELSIUS: Final = 27.0
GREETING: Final = 1  # the number of the first reading, by which a device says that it is there

WIDTH_PER_HEIGHT: Final = 1.6
ROOMS_PER_BUILDING: Final = 10  # in a row of the grid
_OF_TEN: Final = (
    TEMPERATURE, ENERGY, TEMPERATURE, TEMPERATURE, DOOR, TEMPERATURE, TEMPERATURE, ENERGY, TEMPERATURE, TEMPERATURE,
)  # fmt: skip
_SHIFT: Final = 3  # from row to row, so that kinds do not stand in columns


@dataclass(frozen=True, slots=True)
class Device:
    """One device and its room."""

    client_id: str
    kind: str
    x: int
    y: int

    @property
    def topic(self) -> str:
        return f"campus/building{self.x // ROOMS_PER_BUILDING + 1}/{self.kind}/{self.client_id}"


def grid(count: int) -> tuple[int, int]:
    """Columns and rows of a grid with room for so many devices."""
    columns = max(1, round(math.sqrt(count * WIDTH_PER_HEIGHT)))
    return columns, -(-count // columns)


def devices(count: int) -> list[Device]:
    """The devices, from left to right and from the bottom up."""
    columns, _ = grid(count)
    found = []
    for number in range(count):
        y, x = divmod(number, columns)
        kind = _OF_TEN[(x + _SHIFT * y) % len(_OF_TEN)]
        found.append(Device(f"{kind}-{number:04d}", kind, x, y))
    return found


class Measuring:
    """What devices would measure at a moment, in seconds since the beginning. The same seed gives the same."""

    def __init__(self, count: int, seed: int = 1) -> None:
        self._columns, self._rows = grid(count)
        self._dice = random.Random(seed)
        self._values: dict[str, Callable[[Device, float], float]] = {
            TEMPERATURE: self._celsius,
            ENERGY: self._kilowatts,
            DOOR: self._is_open,
        }

    def value(self, device: Device, moment_s: float) -> float:
        return self._values[device.kind](device, moment_s)

    def pause_s(self, device: Device) -> float:
        """Until the device speaks again. Doors speak when somebody comes; the others have a clock that is not exact."""
        period_s = PERIODS_S[device.kind]
        if device.kind == DOOR:
            return max(0.2, self._dice.expovariate(1 / period_s))
        return period_s * self._dice.uniform(0.9, 1.1)

    def first_pause_s(self, device: Device) -> float:
        """Until the first time: all within one period of the slowest clock, doors as well."""
        return self._dice.uniform(0, PERIODS_S[TEMPERATURE])

    def _celsius(self, device: Device, moment_s: float) -> float:
        x, y = device.x / max(1, self._columns - 1), device.y / max(1, self._rows - 1)
        turn, warmer = moment_s / 40, 5 * min(1.0, moment_s / 20)
        field = 19.5 + 1.5 * y
        field += (8 + warmer) * _spot(x, y, 0.27 + 0.10 * math.cos(turn), 0.62 + 0.12 * math.sin(turn), 0.17)
        field += 7.5 * _spot(x, y, 0.74 + 0.06 * math.sin(turn), 0.30 + 0.10 * math.cos(turn), 0.13)
        field -= 5.0 * _spot(x, y, 0.86, 0.88, 0.22)
        return round(field + self._dice.gauss(0, 0.15), 2)

    def _kilowatts(self, device: Device, moment_s: float) -> float:
        busy = 1.6 + math.sin(device.x / 6 + moment_s / 15) + 0.6 * math.cos(device.y / 4)
        rush = 1 + 0.5 * math.sin(moment_s / 4)
        return round(max(0.05, busy * rush + self._dice.gauss(0, 0.12)), 2)

    def _is_open(self, device: Device, moment_s: float) -> float:
        return float(self._dice.random() < 0.35)


def _spot(x: float, y: float, at_x: float, at_y: float, width: float) -> float:
    return math.exp(-((x - at_x) ** 2 + (y - at_y) ** 2) / (2 * width**2))


def payload(device: Device, number: int, value: float) -> bytes:
    """A reading as JSON. Readings of a device are numbered from 1, so that one that is missing or twice is noticed."""
    reading = {"n": number, "kind": device.kind, "value": value, "x": device.x, "y": device.y}
    return json.dumps(reading).encode()
