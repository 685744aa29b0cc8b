"""Prints what the codec makes of many packets, one line each; run in both forms, the lines must be the same.

``python -m tests.mqtt.transcript SEED COUNT``: the whole catalogue, then COUNT damaged packets.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

from brookmq.mqtt import decoding
from brookmq.mqtt.codec import PacketError, decode, encode
from brookmq.mqtt.packets import Connect
from brookmq.mqtt.topics import check_filter, check_name, matches, parse_subscription
from tests.catalogue import CATALOGUE


def inputs(seed: int, count: int) -> Iterator[tuple[int, bytes, int]]:
    entries = list(CATALOGUE.values())
    yield from ((entry.first_byte, entry.body, entry.version) for entry in entries)
    chance = random.Random(seed)
    small = [entry for entry in entries if len(entry.body) < 300]
    for _ in range(count):
        entry = chance.choice(small)
        body = bytearray(entry.body)
        for _ in range(chance.randint(1, 3)):
            at = chance.randint(0, len(body))
            body[at : at + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 2))
        first_byte = entry.first_byte if chance.random() < 0.9 else chance.randrange(256)
        yield first_byte, bytes(body), chance.choice([entry.version, entry.version, 3, 4, 5])


def outcome(first_byte: int, body: bytes, version: int) -> str:
    try:
        packet = decode(first_byte, body, version)
    except PacketError as error:
        return f"{error.reason:02x} {error}"
    version = packet.version if isinstance(packet, Connect) else version
    return f"{packet!r} {encode(packet, version).hex()}"


def topic_outcomes(seed: int, count: int) -> Iterator[str]:
    chance = random.Random(seed)
    for _ in range(count):
        topic, filter_ = ("".join(chance.choices("ab/+#$é\0", (4, 2, 5, 1, 1, 1, 1, 0.1), k=6)) for _ in range(2))
        filter_ = chance.choice(["", "", "$share/", "$share/g/"]) + filter_
        line = [repr(topic), repr(filter_), str(matches(filter_.encode(), topic.encode()))]
        try:
            check_name(topic.encode(), 3)
            check_filter(filter_, 3)
        except PacketError as error:
            line.append(f"{error.reason:02x} {error}")
        try:
            line.append(repr(parse_subscription(filter_)))
        except PacketError as error:
            line.append(str(error))
        yield " ".join(line)


def main(seed: int, count: int) -> None:
    print("plain" if decoding.__file__.endswith(".py") else "compiled")
    for packet in inputs(seed, count):
        print(outcome(*packet))
    for line in topic_outcomes(seed, count):
        print(line)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
