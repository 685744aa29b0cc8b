"""Writes the inputs that the fuzzer starts from: `python -m fuzz.seeds FOLDER`.

Each packet of the catalogue at the place where it belongs, on a client in the middle of its life; and short stories
that reach what single packets do not. What the specification suite sends is recorded by `fuzz.record`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path

from tests.catalogue import CATALOGUE, UNFRAMEABLE
from tests.harness import wire
from tests.harness.wire import Property

from fuzz import configuration as options
from fuzz.program import Kind, Operation, build, unframed

VERSION_BITS = {5: 0, 4: 1, 3: 2}
TOPICS = ("f/exact", "f/x", "s/a", "$delayed/1/f/x", "$SYS/x", "old/x", "deny", "drop", "change", "crash", "away/1")


def frame(place: int, packet: bytes) -> Operation:
    data = unframed(packet)
    return Operation(Kind.BYTES, place, packet) if data is None else Operation(Kind.FRAME, place, data)


def from_catalogue() -> Iterator[bytes]:
    for entry in CATALOGUE.values():
        if len(entry.data) > 500:
            continue
        configuration = bytes((0, 0, VERSION_BITS[entry.version]))
        pieces = Operation(Kind.PIECES, 2, b"\x07" + entry.data)
        yield build(configuration, [frame(0, entry.data)])
        if entry.first_byte >> 4 == 1:
            yield build(configuration, [frame(2, entry.data), frame(2, wire.PINGREQ), pieces])
        else:
            yield build(configuration, [Operation(Kind.PIECES, 0, b"\x03" + entry.data)])
    for data in UNFRAMEABLE.values():
        yield build(bytes(3), [Operation(Kind.BYTES, 0, data)])
        yield build(bytes(3), [Operation(Kind.BYTES, 2, data)])


def _traffic(version: int) -> Iterator[Operation]:
    """Every topic at every QoS, acknowledged; subscriptions come and go in between."""
    for number, topic in enumerate(TOPICS):
        for qos in (0, 1, 2):
            packet_id = 20 + number if qos else None
            message = wire.publish(topic, b"x", version=version, qos=qos, packet_id=packet_id, retain=qos == number % 3)
            yield frame(0, message)
        yield frame(0, wire.acknowledge(wire.Kind.PUBREL, 20 + number))
        yield Operation(Kind.ANSWER, 0)
        if number % 4 == 0:
            yield Operation(Kind.ACKNOWLEDGE, 0, b"\x04")
            yield frame(0, wire.subscribe(60, [(topic, 1), ("#", 2), ("mine", 0), ("deny", 0)], version=version))
            yield Operation(Kind.ANSWER, 0)
        if number % 4 == 2:
            yield frame(0, wire.unsubscribe(61, [topic, "#", "nothing"], version=version))


def _absence(version: int) -> list[Operation]:
    """The client goes and comes back, with its acknowledgements and without; its will, its expiry."""
    back = wire.connect("client-1", version=version, clean=False, props=[(Property.SESSION_EXPIRY, 9)])
    burst = b"".join(wire.publish("f/exact", bytes(120), version=4, qos=1, packet_id=n) for n in range(30, 40))
    return [
        Operation(Kind.BLOCK, 0),
        Operation(Kind.BYTES, 1, burst),
        Operation(Kind.TIME, 0, b"\x00\x05"),
        Operation(Kind.TIME, 0, b"\x00\x20"),
        Operation(Kind.UNBLOCK, 0),
        Operation(Kind.ACKNOWLEDGE, 0, b"\x03"),
        Operation(Kind.DROP, 0),
        Operation(Kind.BYTES, 1, burst),
        frame(2, back),
        Operation(Kind.ANSWER, 2),
        Operation(Kind.ACKNOWLEDGE, 2, b"\x09"),
        frame(3, back),
        Operation(Kind.ANSWER, 3),
        frame(3, wire.disconnect(4, [(Property.SESSION_EXPIRY, 5)]) if version == 5 else wire.disconnect()),
        Operation(Kind.TIME, 0, b"\x01\x00"),
        Operation(Kind.END, 1, b"\x9d"),
    ]


def _conversations() -> Iterator[tuple[int, list[Operation]]]:
    """What needs a certain kind of client: ``(third byte of the configuration, operations)``."""
    method = [(Property.AUTH_METHOD, options.METHOD_NAME)]
    yes, no = (wire.auth(0x18, [*method, (Property.AUTH_DATA, data)]) for data in (b"yes", b"no"))
    again = wire.auth(0x19, method)
    begin = wire.connect("scram", props=[*method, (Property.AUTH_DATA, b"n")])
    for answer in (yes, no, wire.auth(0x19, method), wire.auth(0x18, [(Property.AUTH_METHOD, "x")]), wire.disconnect()):
        yield options.METHOD, [frame(2, begin), frame(2, answer), frame(2, again), frame(2, yes)]
        yield options.METHOD, [frame(0, again), frame(0, answer), frame(0, yes)]
    flood = b"".join(wire.publish("w/1", bytes(90), version=4) for _ in range(12))
    stalled = [Operation(Kind.BLOCK, 0), *[Operation(Kind.BYTES, 1, flood)] * 4]
    yield 0, [*stalled, Operation(Kind.UNBLOCK, 0)]
    yield 0, [*stalled, *[Operation(Kind.TIME, 0, b"\x00\x09")] * 3, Operation(Kind.BYTES, 1, flood)]
    for question in (wire.PINGREQ, wire.unsubscribe(1, ["x"]), wire.acknowledge(wire.Kind.PUBREL, 99)):
        asked = Operation(Kind.REPEAT, 0, b"\xff" + (unframed(question) or b""))
        yield 0, [Operation(Kind.BLOCK, 0), *[asked] * 5]  # it asks and asks, and reads no answer
    aliased = [(Property.TOPIC_ALIAS, 1)]
    for topic in ("f/x", "", ""):
        yield (
            0,
            [frame(0, wire.publish("f/x", b"x", props=aliased)), frame(0, wire.publish(topic, b"y", props=aliased))],
        )
    for name in ("a" * 70, "", "x"):
        for version in (3, 4, 5):
            yield 0, [frame(2, wire.connect(name, version=version, clean=version == 3, keep_alive=70))]
    odd = [
        "",
        "a#",
        "+a",
        "a/#/b",
        "$share//x",
        "$share/+/a",
        "$share/g",
        "$share/g/",
        "$share/g/$exclusive/x",
        "/" * 20,
    ]
    yield 0, [frame(0, wire.subscribe(5, [(name, 0) for name in odd])), frame(0, wire.unsubscribe(6, odd))]
    many = [f"m{number}" for number in range(20)]
    for small in (0, options.SMALL_PACKETS):
        yield small, [frame(0, wire.subscribe(5, [(name, 0) for name in many])), frame(0, wire.unsubscribe(6, many))]
    users = [("u", str(number)) for number in range(8)]
    properties: list[tuple[int, wire.Value]] = [(Property.USER_PROPERTY, pair) for pair in users]
    yield 0, [frame(0, wire.publish("f/x", b"x", props=properties))]
    for payload in (b"text", b"\xff"):
        yield 0, [frame(0, wire.publish("f/x", payload, props=[(Property.PAYLOAD_FORMAT, 1)]))]
        will = wire.Will("w/1", payload, properties=[(Property.PAYLOAD_FORMAT, 1)])
        yield 0, [frame(2, wire.connect("willing", will=will, username="root", password=b"p"))]
    for username in ("deny", "root", "a/b"):
        yield 0, [frame(2, wire.connect("named", version=4, username=username)), Operation(Kind.ANSWER, 2)]
    for topic in ("deny", "$SYS/x", "/".join("a" * 20)):
        yield 0, [frame(2, wire.connect("w", will=wire.Will(topic, qos=2, retain=True))), Operation(Kind.ANSWER, 2)]
    yield 0, [frame(2, wire.connect(f"c{n}")) if n % 2 else Operation(Kind.OPEN, 2) for n in range(30)]
    yield 0, [frame(0, wire.publish("f/" + "x" * 300)), Operation(Kind.OPEN, 0), frame(0, wire.publish("x"))]
    yield 0, [Operation(Kind.TIME, 0, b"\x02\x00")]
    yield 0, [Operation(Kind.BYTES, 0, b"\x30\xff\x7f"), Operation(Kind.TIME, 0, b"\x01\x00")]
    reasons = (None, 0x00, 0x10, 0x80, 0x92)
    acks = [
        frame(0, wire.acknowledge(kind, number, reason))
        for kind in (wire.Kind.PUBACK, wire.Kind.PUBREC, wire.Kind.PUBREL, wire.Kind.PUBCOMP)
        for number in (1, 3, 10)
        for reason in reasons
    ]
    yield 0, acks[:30]
    yield 0, acks[30:]


def stories() -> Iterator[bytes]:
    for version, bits in VERSION_BITS.items():
        for first in (0, 1, 3, 5, 15, 16, 48, 64, 128, 255):
            yield build(bytes((first, 0, bits)), _traffic(version))
        for second in (0, 1, 2, 4, 8, 16, 32, 64, 128, 255):
            yield build(bytes((0, second, bits)), _absence(version))
            yield build(bytes((0, second, bits)), _traffic(version))
        for third in (4, 8, 16, 32, 64, 128):
            yield build(bytes((0, 0, bits | third)), _traffic(version))
            yield build(bytes((0, 0, bits | third)), _absence(version))
    for third, operations in _conversations():
        for first, second in ((0, 0), (1, 2), (3, 4), (0, 1), (64, 8), (0, 0xA0)):
            yield build(bytes((first, second, third)), operations)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for data in (*from_catalogue(), *stories()):
        (folder / sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)
    print(f"{sum(1 for _ in folder.iterdir())} inputs in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
