"""What the broker sees of a table in the store: of the real one (``log.TableLog``) and of its twin in memory.

A table is a set of keys with a state each, in ``PARTS`` parts by the key's hash. The table's owner, the broker, has the
states; the table has the changes. A change is an *op*: an assignment, so that applying the last few ops once more to a
newer state gives the same state. Nothing here knows what a state or an op means.

The owner hands over a change in the same turn in which it changes its own state, or changes its state when the change
is done; both are right, and a snapshot may be asked for in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol
from zlib import crc32

PARTS: Final = 1024
META_KEY: Final = b""
META_PART: Final = PARTS  # the part of the one key that is there before anything is loaded; in no other part

Entry = tuple[bytes, bytes]  # key and state, or key and op
OnPart = Callable[[int, list[Entry], list[Entry]], Iterator[object] | None]
EncodePart = Callable[[int], Iterable[Entry]]


def part_of(key: bytes) -> int:
    """The part that a key belongs to. Keys that are the same up to a byte 0xFF, which no text has, stay together."""
    if not key:
        return META_PART
    end = key.find(b"\xff")
    return crc32(key if end < 0 else key[:end]) % PARTS


class Table(Protocol):
    """A table. Its owner sets ``on_part`` and ``encode_part`` before anything is loaded or changed."""

    #: Called once for each part that has something in the store: the states of its snapshot, then the ops since then,
    #: in order. A key may be in only one of them; an op of a key without a state begins from nothing. Changes that the
    #: owner made to a part before it was loaded are among the ops. An owner that needs long for a part answers with an
    #: iterator, which does the work step by step (``taking``). The part is loaded at its end; changes that are made
    #: until then are appended to the ops.
    on_part: OnPart

    #: Asked for the states of a loaded part, to write its snapshot; of ``META_PART`` too. It is consumed over several
    #: turns when it is long, so it must stand changes meanwhile: iterate over a list of the keys, leave out those that
    #: are gone, and give each state as it is when its turn comes.
    encode_part: EncodePart

    @property
    def failed(self) -> Exception | None:
        """Why it takes no change any more, if so."""

    @property
    def waiting_bytes(self) -> int:
        """Changes that were taken and are not known to be stored."""

    @property
    def full(self) -> bool:
        """Whether whoever causes changes should wait. Changes are taken all the same: what has begun must end."""

    @property
    def all_loaded(self) -> bool:
        """Whether every part is loaded."""

    def change(self, key: bytes, op: bytes, done: Callable[[], None] | None = None) -> None:
        """Takes a change. ``done`` is called once it is stored; in the order of the changes, never within this call."""

    def oldest_waiting(self, now: float) -> float:
        """For how many seconds the oldest change has waited; 0.0 when none waits."""

    def wait(self, callback: Callable[[], None]) -> None:
        """Calls back once, when the table is not full (any more); never within this call."""

    def part_of(self, key: bytes) -> int:
        """The part that a key belongs to."""

    def loaded(self, part: int) -> bool:
        """Whether the owner has all of it, or it has nothing in the store."""

    def load(self, part: int, wake: Callable[[], None]) -> None:
        """Loads a part soon, ahead of others, then calls ``wake``; never within this call."""

    def meta_state(self) -> tuple[bytes, list[bytes]]:
        """The state of ``META_KEY`` (empty: none) and the ops since then, as they were when the table was opened."""

    def begin_loading(self) -> None:
        """Loads all parts, a few at a time, beside what else is to do."""

    async def close(self) -> None:
        """Stores what waits, and ends."""
