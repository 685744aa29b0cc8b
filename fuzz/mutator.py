"""Changes programs as programs: operations move as wholes, bodies of packets change within their frame, and properties
come and go with the length in front of them kept right.

libFuzzer's own mutations do the rest, on the data of one operation or now and then on the whole input.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from random import Random

from tests.catalogue import CATALOGUE, CLIENT, EITHER
from tests.harness.wire import (
    BINARY,
    BYTE,
    FOUR_BYTES,
    PAIR,
    TEXT,
    TWO_BYTES,
    Property,
    Value,
    binary,
    one_property,
    variable,
)

from fuzz.program import PLACES, SAME_TURN, Kind, Operation, Program, build, parse, unframed

Mutate = Callable[[bytes, int], bytes]
STEPS = (1, 1, 1, 2, 3)  # changes made to one input: a connection ends at the first mistake, so mostly one
PROPERTIES_MAX = 4  # put into one packet at a time
USER, EXPLAINED = {Property.USER_PROPERTY}, {Property.USER_PROPERTY, Property.REASON_STRING}
ALLOWED: dict[int, set[Property]] = {
    1: USER
    | {Property.SESSION_EXPIRY, Property.AUTH_METHOD, Property.AUTH_DATA, Property.REQUEST_PROBLEM_INFORMATION}
    | {Property.REQUEST_RESPONSE_INFORMATION, Property.RECEIVE_MAXIMUM, Property.TOPIC_ALIAS_MAXIMUM}
    | {Property.MAXIMUM_PACKET_SIZE},
    3: USER
    | {Property.PAYLOAD_FORMAT, Property.MESSAGE_EXPIRY, Property.CONTENT_TYPE, Property.RESPONSE_TOPIC}
    | {Property.CORRELATION_DATA, Property.TOPIC_ALIAS},
    4: EXPLAINED,
    5: EXPLAINED,
    6: EXPLAINED,
    7: EXPLAINED,
    8: USER | {Property.SUBSCRIPTION_ID},
    10: USER,
    14: EXPLAINED | {Property.SESSION_EXPIRY},
    15: EXPLAINED | {Property.AUTH_METHOD, Property.AUTH_DATA},
}
WORDS = ("a/b", "f/exact", "f/x", "s/a", "f/#", "+/x", "$share/g/s/a", "$delayed/1/f/x", "$SYS/x", "old/x", "mine")


@lru_cache(maxsize=1)
def dictionary() -> list[bytes]:
    """Packets of the catalogue that a client may send, as ``first byte, body``."""
    entries = [entry for entry in CATALOGUE.values() if entry.sender in {CLIENT, EITHER} and len(entry.data) < 400]
    weighted = [entry for entry in entries for _ in range(1 if entry.reason is not None else 4)]
    return [bytes((entry.first_byte,)) + entry.body for entry in weighted]


def mutate(data: bytes, size_max: int, seed: int, mutate_bytes: Mutate) -> bytes:
    chance = Random(seed)
    if chance.random() < 0.05:
        return mutate_bytes(data, size_max)
    program = parse(data)
    operations = [*program.operations]
    configuration = program.configuration
    for _ in range(chance.choice(STEPS)):
        if chance.random() < 0.05:
            at = chance.randrange(len(configuration))
            flipped = configuration[at] ^ 1 << chance.randrange(8)
            configuration = configuration[:at] + bytes((flipped,)) + configuration[at + 1 :]
        else:
            _change(operations, chance, mutate_bytes)
    return _fitting(Program(configuration, operations), size_max)


def _fitting(program: Program, size_max: int) -> bytes:
    operations = [*program.operations]
    data = build(program.configuration, operations)
    while len(data) > size_max and operations:
        operations.pop()
        data = build(program.configuration, operations)
    return data[:size_max]


def _change(operations: list[Operation], chance: Random, mutate_bytes: Mutate) -> None:
    what = chance.random()
    at = chance.randrange(len(operations)) if operations else 0
    if not operations or what < 0.4:
        operations.insert(chance.choice((0, chance.randint(0, len(operations)))), _new(chance))
    elif what < 0.6:
        kind, place, data = operations[at]
        operations[at] = Operation(kind, place, mutate_bytes(data or b"\0", max(8, 2 * len(data))))
    elif what < 0.8:
        operations[at] = _with_fields(operations[at], chance)
    elif what < 0.85:
        del operations[at]
    elif what < 0.9:
        operations.insert(chance.randint(0, len(operations)), operations[at])
    elif what < 0.95:
        kind, place, data = operations[at]
        operations[at] = Operation(kind, chance.randrange(PLACES) | (place ^ SAME_TURN) & SAME_TURN, data)
    else:
        kind, place, data = operations[at]
        swap = {Kind.BYTES: Kind.PIECES, Kind.FRAME: Kind.REPEAT}
        if kind in swap:
            operations[at] = Operation(swap[Kind(kind)], place, bytes((chance.randrange(1, 40),)) + data)


def _new(chance: Random) -> Operation:
    place = chance.choice((0, 0, 0, *range(PLACES))) | (SAME_TURN if chance.random() < 0.1 else 0)
    what = chance.random()
    if what < 0.5:
        return Operation(Kind.FRAME, place, _made(chance))
    if what < 0.75:
        data = chance.choice(dictionary())
        if chance.random() < 0.2:  # a packet id that something is in flight under
            data = data[:1] + bytes((0, chance.randint(1, 12))) + data[3:]
        return Operation(Kind.FRAME, place, data)
    kind = chance.choice([Kind.OPEN, Kind.DROP, Kind.TIME, Kind.BLOCK, Kind.UNBLOCK, Kind.ACKNOWLEDGE, Kind.ANSWER])
    return Operation(kind, place, bytes((chance.choice((0, 0, 1, 140)), chance.randrange(256))))


def _made(chance: Random) -> bytes:
    """``first byte, body`` of a well-formed MQTT 5 packet with fields by chance."""
    packet_id = bytes((0, chance.randint(1, 15)))
    kind = chance.choice((3, 3, 3, 8, 8, 8, 10, chance.choice((4, 5, 6, 7)), 14))
    properties = _properties(kind, chance)
    words = chance.sample(WORDS, chance.randint(1, 3))
    if kind == 3:
        qos = chance.randrange(3)
        flags = qos << 1 | chance.choice((0, 0, 1)) | (8 if qos and chance.random() < 0.2 else 0)
        name = words[0].replace("+", "p").replace("#", "h")
        body = binary(name) + (packet_id if qos else b"") + properties + words[-1].encode()
        return bytes((0x30 | flags,)) + body
    if kind == 8:
        return b"\x82" + packet_id + properties + b"".join(binary(word) + _options(chance) for word in words)
    if kind == 10:
        return b"\xa2" + packet_id + properties + b"".join(binary(word) for word in words)
    if kind == 14:
        return b"\xe0" + chance.choice((b"\x00", b"\x04", b"\x80")) + properties
    return bytes((kind << 4 | (2 if kind == 6 else 0),)) + packet_id + chance.choice((b"\x00", b"\x92")) + properties


def _options(chance: Random) -> bytes:
    return bytes(
        (chance.randrange(3) | chance.choice((0, 4)) | chance.choice((0, 8)) | chance.choice((0, 0x10, 0x20)),)
    )


def _properties(kind: int, chance: Random) -> bytes:
    chosen = [identifier for identifier in sorted(ALLOWED[kind]) if chance.random() < 0.5]
    body = b"".join(one_property(identifier, _value(identifier, chance)) for identifier in chosen)
    return variable(len(body)) + body


def _with_fields(operation: Operation, chance: Random) -> Operation:
    """Other subscription options, or more properties, in a packet that stays well formed apart from that."""
    if operation.kind != Kind.FRAME:
        data = unframed(operation.data) if operation.kind == Kind.BYTES else None
        return operation if data is None else Operation(Kind.FRAME, operation.place, data)
    data = operation.data
    if data and data[0] >> 4 == 8 and chance.random() < 0.7:
        # the options of the last filter are the last byte of a SUBSCRIBE
        return Operation(Kind.FRAME, operation.place, data[:-1] + _options(chance))
    at = _properties_at(data)
    if at is None or at >= len(data) or data[at] >= 0x40:
        return operation
    allowed = sorted(ALLOWED[data[0] >> 4]) if chance.random() < 0.9 else [*Property]
    chosen = chance.sample(allowed, min(len(allowed), chance.randint(1, PROPERTIES_MAX)))
    known = b"" if chance.random() < 0.5 else data[at + 1 : at + 1 + data[at]]
    made = b"".join(one_property(identifier, _value(identifier, chance)) for identifier in chosen) + known
    return Operation(Kind.FRAME, operation.place, data[:at] + variable(len(made)) + made + data[at + 1 + data[at] :])


def _properties_at(data: bytes) -> int | None:
    """Where the length of the properties of a packet stands in ``first byte, body``."""
    kind = data[0] >> 4 if data else 0
    if kind == 1:
        return 1 + 2 + int.from_bytes(data[1:3], "big") + 4
    if kind == 3:
        return 1 + 2 + int.from_bytes(data[1:3], "big") + (2 if data[0] & 6 else 0)
    return {4: 4, 5: 4, 6: 4, 7: 4, 8: 3, 10: 3, 14: 2, 15: 2}.get(kind)


def _value(identifier: int, chance: Random) -> Value:
    word = chance.choice(WORDS)
    if identifier in PAIR:
        return word, ""
    if identifier in TEXT:
        return word
    if identifier in BINARY:
        return word.encode()
    if identifier in BYTE:
        return chance.choice((0, 0, 1, 1, 1, 2))
    if identifier in TWO_BYTES:
        return chance.choice((1, 1, 2, 3, 4, 5, 65_535, 0))
    if identifier in FOUR_BYTES:
        return chance.choice((1, 24, 30, 300, 4_294_967_295, 0))
    return chance.choice((1, 7, 127, 128, 268_435_455, 0))
