"""Bugs planted for the fuzzer to find: each breaks the broker for something that no input of the corpus does."""

from __future__ import annotations

from typing import Any

from brookmq.broker import publishing, requests


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
