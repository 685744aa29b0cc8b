"""The kinds of values that stand in the configuration: durations, sizes, addresses, topic filters.

People write ``"7d"``, ``"64KiB"`` and ``"[::1]:1883"``; the program gets seconds, bytes and a host with a port. Each
kind has its way back to text, so that the example file and the guide show what people write.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BeforeValidator

SECOND = 1
MINUTE = 60
HOUR = 3_600
DAY = 86_400
KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

UINT32_MAX = (1 << 32) - 1
UINT16_MAX = (1 << 16) - 1
PACKET_SIZE_MAX = 268_435_460  # the largest packet that MQTT can express: 256 MiB less one byte, and its header

_DURATIONS = {"d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND, "ms": 0.001}
_SIZES = {"GiB": GIB, "MiB": MIB, "KiB": KIB, "GB": 10**9, "MB": 10**6, "kB": 10**3, "B": 1}
_NUMBER_WITH_UNIT = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z]*)")


@dataclass(frozen=True)
class Unit:
    """Marks a number that is written with a unit. ``name`` is the unit of the plain number."""

    name: str
    render: Callable[[float], str]


def _parse(value: object, units: Mapping[str, float], plain: str, example: str) -> object:
    """Text with a unit as a plain number; a number as it is. What is neither is for pydantic to refuse."""
    if not isinstance(value, str):
        return value
    match = _NUMBER_WITH_UNIT.fullmatch(value.strip())
    factor = units.get(match[2] or plain) if match else None
    if match is None or factor is None:
        raise ValueError(f"expected a number with a unit ({', '.join(units)}), such as {example}; got {value!r}")
    number = float(match[1].replace("_", "")) * factor
    return int(number) if number.is_integer() else number


def parse_duration(value: object) -> object:
    """Seconds out of ``"500ms"``, ``"30s"``, ``"5m"``, ``"1h"``, ``"7d"`` or a number of seconds."""
    return _parse(value, _DURATIONS, "s", '"30s" or "7d"')


def parse_size(value: object) -> object:
    """Bytes out of ``"64KiB"``, ``"1MiB"`` (powers of 1024), ``"1MB"`` (of 1000) or a number of bytes."""
    return _parse(value, _SIZES, "B", '"64KiB" or "1MiB"')


def _largest_unit(value: float, units: Mapping[str, float]) -> str:
    for name, factor in units.items():
        if value and (value / factor).is_integer():
            return f"{value / factor:.0f}{name}"
    return f"{value:g}"


def render_duration(value: float) -> str:
    return _largest_unit(value, _DURATIONS) if value else "0s"


def render_size(value: float) -> str:
    binary = {name: factor for name, factor in _SIZES.items() if name.endswith("iB")}
    return _largest_unit(value, {**binary, "B": 1}) if value else "0B"


DURATION = Unit("seconds", render_duration)
SIZE = Unit("bytes", render_size)

Duration = Annotated[float, BeforeValidator(parse_duration), DURATION]
WholeDuration = Annotated[int, BeforeValidator(parse_duration), DURATION]  # where MQTT carries whole seconds
Size = Annotated[int, BeforeValidator(parse_size), SIZE]


class Address(NamedTuple):
    """Where a listener listens; port 0 means any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it. A name other than localhost may mean anything: it does not count."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def collides(self, other: Address) -> bool:
        """Whether both cannot be bound at once."""
        if self.port != other.port or self.port == 0:
            return False
        anywhere = {"0.0.0.0": "v4", "::": "v6"}  # noqa: S104 (compared, not bound)
        family = {True: "v6", False: "v4"}
        return (
            self.host == other.host
            or anywhere.get(self.host) == family[":" in other.host]
            or anywhere.get(other.host) == family[":" in self.host]
        )


def parse_address(text: str) -> Address:
    """``HOST:PORT`` with IPv6 in brackets."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\[\]:\s]+)):([0-9]{1,5})", text)
    if match is None or int(match[3]) > UINT16_MAX:
        raise ValueError(f"expected HOST:PORT, such as 127.0.0.1:1883 or [::1]:1883; got {text!r}")
    return Address(match[1] or match[2], int(match[3]))


def _check_address(text: str) -> str:
    parse_address(text)
    return text


Bind = Annotated[str, AfterValidator(_check_address)]


def check_filter(text: str) -> str:
    """The shape of a topic filter: ``+`` alone in its level, ``#`` alone and last. [MQTT-4.7.1-1], [MQTT-4.7.1-2]"""
    if not text or "\0" in text:
        raise ValueError("a topic filter has at least one character and no null character")
    levels = text.split("/")
    for number, level in enumerate(levels):
        if "#" in level and (level != "#" or number != len(levels) - 1):
            raise ValueError(f"# stands alone in the last level of a topic filter; got {text!r}")
        if "+" in level and level != "+":
            raise ValueError(f"+ stands alone in its level of a topic filter; got {text!r}")
    return text


TopicFilter = Annotated[str, AfterValidator(check_filter)]


PLACEHOLDERS = ("${client_id}", "${username}")


def check_placeholders(text: str) -> str:
    """Refuses a ``${…}`` that nobody fills in: it would stand in a topic for ever."""
    for found in re.findall(r"\$\{[^}]*\}?", text):
        if found not in PLACEHOLDERS:
            raise ValueError(f"{found} is not known; {' and '.join(PLACEHOLDERS)} are")
    return text


def check_mountpoint(text: str) -> str:
    """A mount point is the beginning of a topic name, so it has no wildcards."""
    if any(character in text for character in "+#\0"):
        raise ValueError(f"a mount point has no wildcards; got {text!r}")
    return check_placeholders(text)


Mountpoint = Annotated[str, AfterValidator(check_mountpoint)]
ClientFilter = Annotated[str, AfterValidator(check_filter), AfterValidator(check_placeholders)]


def check_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


Pattern = Annotated[str, AfterValidator(check_pattern)]
