"""Where a core of a cluster is: `NAME@HOST`, or `NAME@HOST:PORT/ROUTE_PORT` where the usual ports do not do.

HOST is the address under which the other cores reach it; it stands in its certificate. The name is the whole
`NAME@HOST`, as in `node.name`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from brookmq.base.errors import OperationError

PORT = 4222  # for clients of the store
ROUTE_PORT = 6222  # for the other stores
PORT_MAX = 65_535
CORES_MIN = 3  # the fewest of which one can be lost
CORES_MAX = 7  # every append waits for a majority

_PATTERN = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]+)@(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9_.-]+))"
    r"(?::(?P<port>\d{1,5})/(?P<route_port>\d{1,5}))?"
)
_EXPECTED = "expected NAME@HOST, such as a@10.0.0.1, or NAME@HOST:PORT/ROUTE_PORT"


class CoreAddress(NamedTuple):
    """``host`` is without brackets."""

    name: str
    host: str
    port: int = PORT
    route_port: int = ROUTE_PORT

    @property
    def store(self) -> str:
        return joined(self.host, self.port)

    @property
    def route(self) -> str:
        return joined(self.host, self.route_port)

    def __str__(self) -> str:
        usual = (self.port, self.route_port) == (PORT, ROUTE_PORT)
        return self.name if usual else f"{self.name}:{self.port}/{self.route_port}"


def parse_core(text: str) -> CoreAddress:
    """OperationError says what is expected."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise OperationError(f"{text!r} is not the address of a core: {_EXPECTED}")
    host = match["host"] or match["ipv6"]
    if match["ipv6"]:
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            raise OperationError(f"{text!r} is not the address of a core: {host} is no IPv6 address") from None
    name = f"{match['name']}@{f'[{host}]' if match['ipv6'] else host}"
    if match["port"] is None:
        return CoreAddress(name, host)
    ports = int(match["port"]), int(match["route_port"])
    if not all(0 < port <= PORT_MAX for port in ports) or ports[0] == ports[1]:
        raise OperationError(f"{text!r} is not the address of a core: two different ports from 1 to {PORT_MAX}")
    return CoreAddress(name, host, *ports)


def check_cores(cores: Sequence[CoreAddress]) -> None:
    """Whether these can be the cores of a cluster; OperationError if not."""
    _once((core.name for core in cores), "is named twice")
    _once((place for core in cores for place in (core.store, core.route)), "is the address of two")
    if len(cores) not in range(CORES_MIN, CORES_MAX + 1, 2):
        raise OperationError(
            f"a cluster has {CORES_MIN}, 5 or {CORES_MAX} cores, since a majority of them has to be there; "
            f"{len(cores)} given. A single node needs no cluster"
        )


def joined(host: str, port: int) -> str:
    """HOST:PORT, with brackets where they are needed."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _once(values: Iterable[str], complaint: str) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise OperationError(f"{value} {complaint} among the cores")
        seen.add(value)
