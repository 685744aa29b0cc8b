"""Loading a table's parts: those that somebody waits for first, then all others beside what else is to do.

Parts are read several at a time and given to the owner in slices of a few milliseconds: many small parts in one, or one
large part over many. In the background that takes at most half of the time; what somebody waits for is read next and
given ahead of what is only half given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from brookmq.base.errors import InvariantError
from brookmq.store.errors import StoreError
from brookmq.store.table.commit import CallLater, Clock
from brookmq.store.table.format import decode_entries, encode_change, entry_of
from brookmq.store.table.interface import META_PART, Entry

Change = tuple[int, bytes]  # the sequence of its record, and the change as it is written
NOT_STORED_YET: Final = 1 << 63  # as a sequence: behind all that a snapshot can cover
READ_PARTS_MAX: Final = 32  # in one request; it is bounded by bytes as well
PAUSE_S: Final = 0.001


class Snapshot(NamedTuple):
    """A part's snapshot as it was read."""

    covered: int  # the log's sequence up to which all changes of the part are in it
    content: bytes

    def states(self, where: str) -> list[Entry]:
        return list(decode_entries(self.content, where))


Found = Mapping[int, Snapshot] | StoreError  # at least one of the parts that were asked for
GetParts = Callable[[list[int], Callable[[Found], None]], None]  # answers later
TakePart = Callable[[int, int, list[Entry], list[Entry]], Iterator[object] | None]


class Given:
    """A part that the owner is taking."""

    __slots__ = ("ops", "steps")

    def __init__(self, ops: list[Entry]) -> None:
        self.ops = ops  # changes that are made meanwhile are appended
        self.steps: Iterator[object] = iter(())


class Loading:
    """Which parts are loaded, and the changes of those that are not.

    Invariants: a part is in ``_unloaded`` until the owner has taken all of it; until it begins to, it is read or in
    ``_ready``, then in ``_given``. One request is under way at most.
    """

    def __init__(
        self,
        get_parts: GetParts,
        take_part: TakePart,
        on_failed: Callable[[StoreError], None],
        call_later: CallLater,
        clock: Clock,
        slice_s: float,
        snapshotted: set[int],
        tail: Mapping[int, list[Change]],
    ) -> None:
        self._get_parts = get_parts
        self._take_part = take_part
        self._on_failed = on_failed
        self._call_later = call_later
        self._clock = clock
        self._slice_s = slice_s
        self._unloaded = {part: tail.get(part, []) for part in sorted({*snapshotted, *tail} - {META_PART})}
        self._ready: dict[int, Snapshot | None] = dict.fromkeys(self._unloaded.keys() - snapshotted)
        self._given: dict[int, Given] = {}
        self._wakers: dict[int, list[Callable[[], None]]] = {}
        self._wanted: deque[int] = deque()  # in the order in which somebody came to wait for them
        self._reading = False
        self._background = False
        self._pausing = False  # the background leaves time to others
        self._soon = False  # the next slice is scheduled
        self._ended = False

    @property
    def all_loaded(self) -> bool:
        return not self._unloaded

    def loaded(self, part: int) -> bool:
        return part not in self._unloaded

    def note(self, part: int, key: bytes, op: bytes) -> None:
        """A part is changed that is not loaded: the change comes with it."""
        if part in self._given:
            self._given[part].ops.append((key, op))
        else:
            self._unloaded[part].append((NOT_STORED_YET, encode_change(part, key, op)))

    def load(self, part: int, wake: Callable[[], None]) -> None:
        """Loads a part ahead of others; ``wake`` is called after this call."""
        if part not in self._unloaded:
            self._call_later(0.0, wake)
        elif part in self._wakers:
            self._wakers[part].append(wake)
        else:
            self._wakers[part] = [wake]
            self._wanted.append(part)
            self._arm()

    def begin(self) -> None:
        """Loads all, in the background."""
        self._background = True
        self._arm()

    def end(self) -> None:
        """Loads nothing more."""
        self._ended = True

    # Inside

    def _arm(self) -> None:
        if not self._soon and not self._ended:
            self._soon = True
            self._call_later(0.0, self._slice)

    def _slice(self) -> None:
        """Gives parts to the owner for a moment, and has more of them read."""
        self._soon = False
        if self._ended:
            return
        began = self._clock()
        ends_at = began + self._slice_s
        given = False
        while not self._ended and (part := self._next_part()) is not None:
            self._give(part, ends_at)
            given = True
            if self._clock() >= ends_at:
                break
        self._read()
        if given and self._background and not self._pausing:
            self._pausing = True
            self._call_later(max(self._clock() - began, PAUSE_S), self._resume)
        if self._next_part() is not None:  # somebody waits for it
            self._arm()

    def _resume(self) -> None:
        self._pausing = False
        self._arm()

    def _next_part(self) -> int | None:
        """The next part that can be given to the owner now."""
        while self._wanted and self._wanted[0] not in self._unloaded:
            self._wanted.popleft()
        for part in self._wanted:
            if part in self._ready or part in self._given:
                return part
        if self._background and not self._pausing:
            return next(iter(self._given or self._ready), None)
        return None

    def _give(self, part: int, ends_at: float) -> None:
        """Lets the owner take a part, or some more of it, until all is taken or the slice ends."""
        if part not in self._given and not self._begin(part):
            return
        for _ in self._given[part].steps:
            if self._clock() >= ends_at:
                return
        del self._given[part], self._unloaded[part]
        for wake in self._wakers.pop(part, ()):
            wake()

    def _begin(self, part: int) -> bool:
        """Whether the snapshot can be read."""
        snapshot = self._ready.pop(part)
        try:
            covered, states = (0, []) if snapshot is None else (snapshot.covered, snapshot.states(f"part {part}"))
        except StoreError as error:
            self._fail(error)
            return False
        ops = [entry_of(change) for sequence, change in self._unloaded[part] if sequence > covered]
        given = self._given[part] = Given(ops)
        given.steps = self._take_part(part, covered, states, ops) or given.steps
        return True

    def _read(self) -> None:
        if self._reading or self._ended:
            return
        parts = list(islice(filter(self._unread, self._wanted), READ_PARTS_MAX))
        if not parts and self._background and not self._ready:
            parts = list(islice(filter(self._unread, self._unloaded), READ_PARTS_MAX))
        if parts:
            self._reading = True
            self._get_parts(parts, self._found)

    def _unread(self, part: int) -> bool:
        return part in self._unloaded and part not in self._ready and part not in self._given

    def _found(self, found: Found) -> None:
        self._reading = False
        if self._ended:
            return
        if isinstance(found, StoreError):
            self._fail(found)
            return
        if not found:
            raise InvariantError("parts were asked for, and none came")
        self._ready.update((part, snapshot) for part, snapshot in found.items() if self._unread(part))
        self._arm()

    def _fail(self, error: StoreError) -> None:
        self._ended = True
        self._on_failed(error)
