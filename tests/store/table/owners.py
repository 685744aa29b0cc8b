"""An owner of a table as simple as one can be: its states are bytes, an op is the new state, an empty op is the end."""

from __future__ import annotations

from collections.abc import Iterable

from brookmq.store.table.interface import META_KEY, META_PART, Entry, Table, part_of


class Owner:
    """Keeps what a table gives it, and changes it. ``done`` has the ops whose storing was told, in order.

    The states are in parts, since a dictionary of a million keys takes a tenth of a second when it grows.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.by_part: dict[int, dict[bytes, bytes]] = {}
        self.done: list[Entry] = []
        self.parts: list[int] = []  # in the order in which they came
        table.on_part = self.take_part
        table.encode_part = self.encode_part
        state, ops = table.meta_state()
        for value in (state, *ops):
            self.assign(META_KEY, value)

    @property
    def states(self) -> dict[bytes, bytes]:
        return {key: state for states in self.by_part.values() for key, state in states.items()}

    def assign(self, key: bytes, value: bytes) -> None:
        states = self.by_part.setdefault(part_of(key), {})
        if value:
            states[key] = value
        else:
            states.pop(key, None)

    def take_part(self, part: int, states: list[Entry], ops: list[Entry]) -> None:
        assert part not in self.by_part, "a part comes once"
        assert part != META_PART
        self.parts.append(part)
        self.by_part[part] = {}
        for key, value in (*states, *ops):
            assert part_of(key) == part
            self.assign(key, value)

    def encode_part(self, part: int) -> Iterable[Entry]:
        assert self.table.loaded(part)
        states = self.by_part.get(part, {})
        for key in list(states):
            if (state := states.get(key)) is not None:
                yield key, state

    def change(self, key: bytes, value: bytes) -> None:
        self.assign(key, value)
        self.table.change(key, value, lambda: self.done.append((key, value)))
