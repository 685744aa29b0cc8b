"""A node seen from outside: what its API counts, what the system says about its process, and waiting for either."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

import httpx
import psutil

from tests.harness.node import Node

WAIT_SECONDS = 60.0  # only reached by a failure
LOOK_SECONDS = 0.02
MIB = 1 << 20


def wait_until(condition: Callable[[], object], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Wait for a condition; the deadline is for failures only."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"not within {seconds} s: {what}"
        time.sleep(LOOK_SECONDS)


class Watched:
    """The figures of one running node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.process = psutil.Process(node.process.pid)
        self._http = httpx.Client(base_url="http://{}:{}".format(*node.http), timeout=WAIT_SECONDS, trust_env=False)

    def __enter__(self) -> Self:
        self.ready()  # from here on the HTTP connection is one of the node's files
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def ready(self) -> bool:
        return self._http.get("/readyz").is_success

    def counter(self, name: str) -> int:
        value: int = self._http.get("/api/v1/metrics").json()["counters"][name]
        return value

    def gauge(self, name: str) -> int:
        return int(self._http.get("/api/v1/metrics").json()["gauges"][name])

    def rss(self) -> int:
        """Bytes of memory that the process has."""
        size: int = self.process.memory_info().rss
        return size

    def files(self) -> int:
        """Open files, once the store is there with all its connections."""
        wait_until(self.ready, "the node is ready")
        count: int = self.process.num_fds()
        return count

    def left_behind(self) -> dict[str, int]:
        """What clients can leave behind."""
        gauges = self._http.get("/api/v1/metrics").json()["gauges"]
        names = ("connections", "transports", "sessions", "subscriptions", "filters", "publishers_waiting_for")
        return {name: int(gauges[name]) for name in names} | {"files": self.files()}
