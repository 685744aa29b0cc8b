"""A node and its store, seen from outside: what `/readyz` and the alarms say, and which processes there are."""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import psutil

from tests.faults.watching import Watched

PATIENCE_SECONDS = 60.0  # only reached by a failure
PROGRAM = "nats-server"


def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> float:
    """Wait for a condition; how long it took."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds, f"not within {seconds} s: {what}"
        time.sleep(0.005)
    return time.monotonic() - begin


def lives(process: psutil.Process) -> bool:
    """Whether it runs; one that nobody has reaped yet does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def of_folder(path: Path) -> list[psutil.Process]:
    """The processes that have this folder in their command line."""
    found = psutil.process_iter(["cmdline"])
    return [each for each in found if lives(each) and any(str(path) in word for word in each.info["cmdline"] or ())]


class WatchedStore(Watched):
    """One node with the store that it started, if it has one."""

    def store(self) -> psutil.Process | None:
        """The process of the store."""
        for child in self.process.children():
            try:
                if PROGRAM in child.name():
                    return child
            except psutil.NoSuchProcess:
                continue
        return None

    def has_store(self) -> psutil.Process:
        """The process of the store, waited for."""
        until(self.store, "the store runs")
        found = self.store()
        assert found is not None
        return found

    def readiness(self) -> str:
        """What `/readyz` says: empty for ready, else the reason."""
        answer = self._http.get("/readyz")
        if answer.status_code == HTTPStatus.OK:
            return ""
        assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
        reason: str = answer.json()["message"]
        assert reason
        return reason

    def until_ready(self, seconds: float = PATIENCE_SECONDS) -> float:
        return until(lambda: not self.readiness(), "the node is ready", seconds)

    def until_not_ready(self) -> str:
        until(self.readiness, "the trouble is noticed")
        return self.readiness()

    def alarms(self) -> dict[str, str]:
        """Names and messages of the alarms that are raised now."""
        return {alarm["name"]: alarm["message"] for alarm in self._http.get("/api/v1/alarms").json()}

    def is_healthy(self) -> bool:
        """`/healthz`: the node itself is alive, whatever its store does."""
        return self._http.get("/healthz").status_code == HTTPStatus.OK
