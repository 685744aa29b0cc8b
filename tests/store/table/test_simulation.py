"""A table through random changes, snapshots and crashes: each start finds exactly what the log was given.

Every seed is another story. A change sets one field of a key or ends the key; the owner changes its own states at once
or when the change is done, and takes parts whole or step by step. After each crash the states found must be those of a
prefix of all changes: everything that was done is in it, and the rest is there in order or not at all.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator

import pytest

from brookmq.store.table.interface import META_KEY, META_PART, PARTS, Entry, part_of
from brookmq.store.table.taking import steps
from tests.store.table.simulated import LIMITS, Loop, Process, Store

FIELDS = 3
END = b"!"
Fields = dict[int, bytes]


def fold(states: dict[bytes, Fields], key: bytes, op: bytes) -> None:
    if op == END:
        states.pop(key, None)
    else:
        states.setdefault(key, {})[op[0]] = op[1:]


def encode(fields: Fields) -> bytes:
    return b"".join(b"%c%c%c" % (field, *divmod(len(value), 256)) + value for field, value in sorted(fields.items()))


def decode(state: bytes) -> Fields:
    fields, offset = {}, 0
    while offset < len(state):
        end = offset + 3 + state[offset + 1] * 256 + state[offset + 2]
        fields[state[offset]] = state[offset + 3 : end]
        offset = end
    return fields


class Broker:
    """The owner of the table in one process."""

    def __init__(self, process: Process, eager: bool, seconds_of_a_step: float | None) -> None:
        self.table = process.table
        self.loop = process.loop
        self.states: dict[bytes, Fields] = {}
        self.eager = eager
        self.seconds_of_a_step = seconds_of_a_step  # None: a part is taken whole
        self.taken: set[bytes] = set()  # keys of parts that are taken step by step
        self.steps_between = 0  # changes of what was taken, of parts that were not loaded yet
        self.done = 0
        self.table.on_part = self.take
        self.table.encode_part = self.encode
        state, ops = self.table.meta_state()
        if state:
            self.states[META_KEY] = decode(state)
        for op in ops:
            fold(self.states, META_KEY, op)

    def take(self, part: int, states: list[Entry], ops: list[Entry]) -> Iterator[None] | None:
        if self.seconds_of_a_step is not None:
            return self.take_in_steps(states, ops, self.seconds_of_a_step)
        for key, state in states:
            self.states[key] = decode(state)
        for key, op in ops:
            fold(self.states, key, op)
        return None

    def take_in_steps(self, states: list[Entry], ops: list[Entry], seconds: float) -> Iterator[None]:
        for together in steps(states, ops):
            for key, state, changes in together:
                if state is not None:
                    self.states[key] = decode(state)
                for op in changes:
                    fold(self.states, key, op)
                self.taken.add(key)
            self.loop.now += seconds
            yield

    def has(self, key: bytes) -> bool:
        return key in self.taken or self.table.loaded(part_of(key))

    def encode(self, part: int) -> Iterable[Entry]:
        for key in [key for key in self.states if part_of(key) == part]:
            if key in self.states:
                yield key, encode(self.states[key])

    def change(self, key: bytes, op: bytes) -> None:
        self.steps_between += key in self.taken and not self.table.loaded(part_of(key))
        if self.eager and self.has(key):
            fold(self.states, key, op)

        def done() -> None:
            self.done += 1
            if not self.eager and self.has(key):
                fold(self.states, key, op)

        self.table.change(key, op, done)


class Story:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.loop = Loop()
        self.store = Store(self.chance)
        self.eager = self.chance.random() < 0.5
        self.seconds_of_a_step = self.chance.choice([None, 0.0, LIMITS.slice_s / 2, LIMITS.slice_s])
        self.steps_between = 0
        count, parts = self.chance.choice([3, 20, 60]), self.chance.choice([8, PARTS])
        keys = (key for number in itertools.count() if part_of(key := b"k%d" % number) < parts)
        self.keys = [META_KEY, *itertools.islice(keys, count)]
        self.large = self.chance.choice([0.0, 0.01, 0.3])  # how often a change has to go in pieces
        self.taken: list[Entry] = []  # by any process, as far as the store has it; and by this one, all
        self.found = 0  # how many of them this process found
        self.longest_tail = 0

    def run(self, crashes: int) -> None:
        for _ in range(crashes):
            process = Process(self.store, self.loop, self.chance)
            broker = Broker(process, self.eager, self.seconds_of_a_step)
            if self.chance.random() < 0.8:
                process.table.begin_loading()
            for _ in range(self.chance.randint(1, 1_500)):
                self.step(broker)
            process.crash()
            self.settle_accounts(broker)
            self.steps_between += broker.steps_between
        process = Process(self.store, self.loop, self.chance)
        broker = Broker(process, self.eager, self.seconds_of_a_step)
        self.check_all(process, broker)

    def step(self, broker: Broker) -> None:
        choice = self.chance.random()
        if choice < 0.3 and not broker.table.full:
            key = self.chance.choice(self.keys)
            size = self.chance.choice([0, 1, 10, 100]) if self.chance.random() >= self.large else 1_000
            op = (
                END
                if self.chance.random() < 0.2
                else b"%c" % self.chance.randrange(FIELDS) + bytes([self.chance.randrange(256)]) * size
            )
            self.taken.append((key, op))
            broker.change(key, op)
        elif choice < 0.31:
            part = part_of(self.chance.choice(self.keys[1:]))
            broker.table.load(part, lambda: self.woken(broker, part))
        else:
            self.loop.step()
        broker.table.check_invariants()
        self.longest_tail = max(self.longest_tail, broker.table.tail.bytes)

    @staticmethod
    def woken(broker: Broker, part: int) -> None:
        assert broker.table.loaded(part)

    def settle_accounts(self, broker: Broker) -> None:
        """What the store has of the changes; whatever was done is among them."""
        done = self.found + broker.done
        self.found = self.store.changes
        assert done <= self.found <= len(self.taken), "a change that was done is gone, or came from nowhere"
        del self.taken[self.found :]

    def check_all(self, process: Process, broker: Broker) -> None:
        process.table.begin_loading()
        while not process.table.all_loaded:
            assert self.loop.step(), "nothing happens any more, and not all is loaded"
        expected: dict[bytes, Fields] = {}
        for key, op in self.taken:
            fold(expected, key, op)
        assert broker.states == expected
        process.crash()


def test_what_is_found_is_what_was_stored() -> None:
    snapshots = purges = longest = between = 0
    for seed in range(100):
        story = Story(seed)
        try:
            story.run(crashes=4)
        except BaseException:
            print(f"seed {seed}")
            raise
        snapshots += story.store.snapshots
        purges += story.store.purges
        longest = max(longest, story.longest_tail)
        between += story.steps_between
    print(f"{snapshots} snapshots, {purges} purges, longest tail {longest} bytes, {between} changes between steps")
    assert snapshots > 1_000, "the seeds must reach what they are for"
    assert purges > 100
    assert between > 50
    assert longest < LIMITS.tail_bytes_max + LIMITS.waiting_bytes_max + 2_000


@pytest.mark.long
@pytest.mark.parametrize("first", range(1_000, 11_000, 500))
def test_many_more_stories(first: int) -> None:
    for seed in range(first, first + 500):
        story = Story(seed)
        try:
            story.run(crashes=6)
        except BaseException:
            print(f"seed {seed}")
            raise


def test_the_meta_part_is_told_apart() -> None:
    assert part_of(META_KEY) == META_PART
