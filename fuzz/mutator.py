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
    one_property,
    variable,
)

from fuzz.program import PLACES, SAME_TURN, Kind, Operation, Program, build, parse, unframed

Mutate = Callable[[bytes, int], bytes]
STEPS_MAX = 4  # changes made to one input
WORDS = ("a/b", "f/exact", "f/x", "s/a", "f/#", "+/x", "$share/g/s/a", "$delayed/1/f/x", "$SYS/x", "old/x", "mine")


@lru_cache(maxsize=1)
def dictionary() -> list[bytes]:
    """Packets of the catalogue that a client may send, as ``first byte, body``."""
    entries = [entry for entry in CATALOGUE.values() if entry.sender in {CLIENT, EITHER} and len(entry.data) < 400]
    return [bytes((entry.first_byte,)) + entry.body for entry in entries]


def mutate(data: bytes, size_max: int, seed: int, mutate_bytes: Mutate) -> bytes:
    chance = Random(seed)
    if chance.random() < 0.05:
        return mutate_bytes(data, size_max)
    program = parse(data)
    operations = [*program.operations]
    configuration = program.configuration
    for _ in range(chance.randint(1, STEPS_MAX)):
        if chance.random() < 0.05:
            at = chance.randrange(len(configuration))
            flipped = configuration[at] ^ 1 << chance.randrange(8)
            configuration = configuration[:at] + bytes((flipped,)) + configuration[at + 1 :]
        else:
            _change(operations, chance, mutate_bytes)
    return _fitting(Program(configuration, operations), size_max)


def cross(first: bytes, second: bytes, size_max: int, seed: int) -> bytes:
    """The beginning of one program and the end of another."""
    chance = Random(seed)
    ours, theirs = parse(first), parse(second)
    at, behind = chance.randint(0, len(ours.operations)), chance.randint(0, len(theirs.operations))
    return _fitting(Program(ours.configuration, ours.operations[:at] + theirs.operations[behind:]), size_max)


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
    if not operations or what < 0.25:
        operations.insert(chance.randint(0, len(operations)), _new(chance))
    elif what < 0.55:
        kind, place, data = operations[at]
        operations[at] = Operation(kind, place, mutate_bytes(data or b"\0", max(8, 2 * len(data))))
    elif what < 0.8:
        operations[at] = _with_property(operations[at], chance)
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
    place = chance.randrange(PLACES) | (SAME_TURN if chance.random() < 0.2 else 0)
    if chance.random() < 0.6:
        data = chance.choice(dictionary())
        if chance.random() < 0.2:  # a packet id that something is in flight under
            data = data[:1] + bytes((0, chance.randint(1, 12))) + data[3:]
        return Operation(Kind.FRAME, place, data)
    kind = chance.choice([Kind.OPEN, Kind.DROP, Kind.TIME, Kind.BLOCK, Kind.UNBLOCK, Kind.ACKNOWLEDGE, Kind.ANSWER])
    return Operation(kind, place, bytes((chance.choice((0, 0, 1, 140)), chance.randrange(256))))


def _with_property(operation: Operation, chance: Random) -> Operation:
    """One more property in an MQTT 5 packet, or one field replaced by a word that means something to the broker."""
    if operation.kind != Kind.FRAME:
        data = unframed(operation.data) if operation.kind == Kind.BYTES else None
        return operation if data is None else Operation(Kind.FRAME, operation.place, data)
    data = operation.data
    at = _properties_at(data)
    if at is None or at >= len(data) or data[at] >= 0x40:
        return operation
    added = one_property(identifier := chance.choice([*Property]), _value(identifier, chance))
    size = data[at] + len(added)
    return Operation(Kind.FRAME, operation.place, data[:at] + variable(size) + added + data[at + 1 :])


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
        return chance.choice((0, 1, 1, 2))
    if identifier in TWO_BYTES:
        return chance.choice((0, 1, 2, 4, 5, 65_535))
    if identifier in FOUR_BYTES:
        return chance.choice((0, 1, 30, 80, 4_294_967_295))
    return chance.choice((0, 1, 127, 128, 268_435_455))
