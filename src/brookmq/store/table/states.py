"""A small table whose states nobody folds: all of it is in memory, and a change replaces a state or removes it.

For what is written seldom and asked for by name. Nothing can be asked or changed before all of it is loaded, which is a
matter of milliseconds; ``when_loaded`` tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from brookmq.base.errors import CallerError
from brookmq.store.table.interface import META_PART, Entry, Table, part_of
from brookmq.store.value_record import DELETED, SET, state_after


class KeyedStates:
    """The owner of such a table. ``call_soon`` is the loop's."""

    def __init__(self, table: Table, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self.table = table
        self._call_soon = call_soon
        self._parts: dict[int, dict[bytes, bytes]] = {}
        self._waiting: list[Callable[[], None]] = []
        self._watchers: list[tuple[bytes, Callable[[bytes], None]]] = []
        table.on_part = self._on_part
        table.encode_part = self._encode_part

    def begin(self) -> None:
        """Loads it."""
        self.table.begin_loading()
        self._call_soon(self._tell_loaded)

    @property
    def loaded(self) -> bool:
        return self.table.all_loaded

    def when_loaded(self, callback: Callable[[], None]) -> None:
        """Calls back once all is there; never within this call."""
        self._waiting.append(callback)
        if self.loaded:
            self._call_soon(self._tell_loaded)

    def watch(self, prefix: bytes, changed: Callable[[bytes], None]) -> None:
        """Calls ``changed(key)`` after each change of a key that begins so, whoever makes it; not while loading."""
        self._watchers.append((prefix, changed))

    def get(self, key: bytes) -> bytes | None:
        self._check()
        return self._parts.get(part_of(key), {}).get(key)

    def items(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Those whose keys begin so, in the order of their keys."""
        self._check()
        return sorted(
            (key, state) for part in self._parts.values() for key, state in part.items() if key.startswith(prefix)
        )

    def put(self, key: bytes, state: bytes, done: Callable[[], None] | None = None) -> None:
        """Sets a state; ``done`` once that is stored."""
        self._check()
        self._parts.setdefault(part_of(key), {})[key] = state
        self.table.change(key, SET + state, done)
        self._tell_changed(key)

    def remove(self, key: bytes, done: Callable[[], None] | None = None) -> bool:
        """Removes a state; whether there was one. Without one ``done`` is not called."""
        self._check()
        part = part_of(key)
        states = self._parts.get(part, {})
        if key not in states:
            return False
        del states[key]
        if not states:
            del self._parts[part]
        self.table.change(key, DELETED, done)
        self._tell_changed(key)
        return True

    def clear(self) -> None:
        """Removes everything."""
        for key, _ in self.items(b""):
            self.remove(key)

    def _tell_changed(self, key: bytes) -> None:
        for prefix, changed in self._watchers:
            if key.startswith(prefix):
                changed(key)

    def _check(self) -> None:
        if not self.loaded:
            raise CallerError("a table is asked before it is loaded: see when_loaded")

    def _on_part(self, part: int, states: list[Entry], ops: list[Entry]) -> None:
        found: dict[bytes, bytes] = dict(states)
        for key, op in ops:
            state = state_after(op)
            if state is None:
                found.pop(key, None)
            else:
                found[key] = state
        if found:
            self._parts[part] = found
        self._call_soon(self._tell_loaded)

    def _tell_loaded(self) -> None:
        if self.loaded:
            waiting, self._waiting = self._waiting, []
            for callback in waiting:
                callback()

    def _encode_part(self, part: int) -> Iterator[Entry]:
        if part != META_PART:
            yield from [*self._parts.get(part, {}).items()]
