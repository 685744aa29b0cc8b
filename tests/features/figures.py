"""Figures of a running node, read over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx

from tests.harness.node import Node

WAIT_SECONDS = 60.0


def metric(node: Node, name: str) -> float:
    """A counter or gauge by the name that `brookmq ctl metrics` has for it."""
    host, port = node.http
    answer = httpx.get(f"http://{host}:{port}/api/v1/metrics").raise_for_status().json()
    found = {**answer["counters"], **answer["gauges"]}
    return float(found[name])


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until something is so; fail if it does not come."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
