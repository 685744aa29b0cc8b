"""An owner of a table as simple as one can be: its states are bytes, an op is the new state, an empty op is the end."""

from __future__ import annotations

from collections.abc import Iterable

from brookmq.store.table.interface import META_KEY, META_PART, Entry, Table, part_of


class Owner:
    """Keeps what a table gives it, and changes it. ``done`` has the ops whose storing was told, in order."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.states: dict[bytes, bytes] = {}
        self.keys: dict[int, set[bytes]] = {}
        self.done: list[Entry] = []
        self.parts: list[int] = []  # in the order in which they came
        table.on_part = self.take_part
        table.encode_part = self.encode_part
        state, ops = table.meta_state()
        for value in (state, *ops):
            self.assign(META_KEY, value)

    def assign(self, key: bytes, value: bytes) -> None:
        keys = self.keys.setdefault(part_of(key), set())
        if value:
            self.states[key] = value
            keys.add(key)
        else:
            self.states.pop(key, None)
            keys.discard(key)

    def take_part(self, part: int, states: list[Entry], ops: list[Entry]) -> None:
        assert part not in self.parts, "a part comes once"
        assert part != META_PART
        self.parts.append(part)
        for key, value in (*states, *ops):
            assert part_of(key) == part
            self.assign(key, value)

    def encode_part(self, part: int) -> Iterable[Entry]:
        assert self.table.loaded(part)
        for key in list(self.keys.get(part, ())):
            if (state := self.states.get(key)) is not None:
                yield key, state

    def change(self, key: bytes, value: bytes) -> None:
        self.assign(key, value)
        self.table.change(key, value, lambda: self.done.append((key, value)))
