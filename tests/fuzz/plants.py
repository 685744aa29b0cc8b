"""Bugs planted for the fuzzer to find: each breaks the broker for something that few packets do.

``python -m tests.fuzz.plants PLANT FOLDER`` copies the inputs of the corpus that do not meet the bug already.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from fuzz.replay import CORPUS, files
from fuzz.world import run

from brookmq.broker import publishing, requests


def three_properties() -> None:
    """Crashes on a PUBLISH with content type, response topic and expiry: met within seconds."""
    sound = publishing.forwardable  # type: ignore[attr-defined]

    def broken(body: bytes, start: int, end: int) -> Any:
        answer = sound(body, start, end)
        if answer[1] is not None and b"\x03\x00" in answer[0] and b"\x08\x00" in answer[0]:
            raise KeyError("three at once")
        return answer

    publishing.forwardable = broken  # type: ignore[attr-defined,assignment]


def rare_properties() -> None:
    """Crashes on a PUBLISH with content type, correlation data, response topic, expiry and no user property."""
    sound = publishing.forwardable  # type: ignore[attr-defined]

    def broken(body: bytes, start: int, end: int) -> Any:
        answer = sound(body, start, end)
        properties, expiry = answer[0], answer[1]
        named = b"\x03\x00" in properties and b"\x09\x00" in properties and b"\x26" not in properties
        if named and b"\x08\x00" in properties and expiry is not None:
            raise KeyError("a rare combination")
        return answer

    publishing.forwardable = broken  # type: ignore[attr-defined,assignment]


def miscounted_subscription() -> None:
    """Nothing raises, only a count goes wrong: a filter with retain handling 2, No Local and QoS 2."""
    sound = requests._subscribe

    def broken(channel: Any, packet: Any, denials: Any, now: float) -> None:
        sound(channel, packet, denials, now)
        for request in packet.subscriptions:
            quiet = request.retain_handling == 2 and request.no_local and not request.retain_as_published
            if quiet and request.qos == 2:
                channel.broker.subscriptions.count += 1

    requests._subscribe = broken


def main(plant: str, folder: Path) -> None:
    PLANTS[plant]()
    for path in files([CORPUS]):
        try:
            run(path.read_bytes())
        except (KeyError, AssertionError):
            continue
        shutil.copy(path, folder)


PLANTS = {plant.__name__: plant for plant in (three_properties, rare_properties, miscounted_subscription)}

if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
