"""Sessions on their way to another node: taken off the one, and fitted to the journal of the other.

*Detached*: nothing in the state depends on the node that wrote it. Nobody is connected, and every cursor is written
out. The will of a connection that was still up is left behind: it belongs to that connection, which does not end here.

*Moved*: imported messages get new offsets, so everything that names one is translated. A message that did not come
along (the backup has no journal, or retention had it) can't be delivered: it leaves the window and is counted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from brookmq.store.session_state import NOT_JOURNALED, OFFSET_BITS, GroupState, SessionState, position_of

PUBCOMP_DUE: Final = 3
_OFFSET_MASK: Final = (1 << OFFSET_BITS) - 1


def detached(state: SessionState, ends: Sequence[int], at: float) -> SessionState:
    """The state without what only its node can know; changes it. ``ends`` is how far a live session has come."""
    if state.live:
        state.cursors = further(state.cursors, ends)
        state.live = 0
    if state.connected:
        state.connected = 0
        state.disconnected_at = at
    if state.will_due == 0.0:
        state.will, state.will_taken = None, False
    state.open_ids = dict.fromkeys(sorted(state.open_ids), NOT_JOURNALED)
    state.seen, state.released = (), set()
    return state


def further(cursors: Sequence[int], ends: Sequence[int]) -> list[int]:
    """The larger of both for each shard."""
    count = max(len(cursors), len(ends))
    padded = [*cursors, *[0] * (count - len(cursors))], [*ends, *[0] * (count - len(ends))]
    return [max(pair) for pair in zip(*padded, strict=True)]


class Moves:
    """Where messages of a backup are in the journal that took them. ``heads`` are the ends of its shards before that:
    who has no message to come begins there."""

    def __init__(self, heads: Sequence[int]) -> None:
        self.heads = [*heads]
        self._stretches: list[list[tuple[int, int, int]]] = [[] for _ in heads]  # old offset, new offset, count

    def add(self, shard: int, old: int, new: int, count: int) -> None:
        """``count`` messages from ``old`` on are now at ``new``. Called in order for each shard."""
        stretches = self._stretches[shard]
        if stretches:
            last_old, last_new, last_count = stretches[-1]
            if last_old + last_count == old and last_new + last_count == new:
                stretches[-1] = (last_old, last_new, last_count + count)
                return
        stretches.append((old, new, count))

    def cursor(self, shard: int, offset: int) -> int:
        """The first message at or behind an old offset; the end of all when there is none."""
        stretches = self._stretches[shard]
        if not stretches:
            return self.heads[shard]
        index = bisect_right(stretches, offset, key=lambda stretch: stretch[0]) - 1
        if index < 0:
            return stretches[0][1]
        old, new, count = stretches[index]
        if offset < old + count:
            return new + offset - old
        return stretches[index + 1][1] if index + 1 < len(stretches) else new + count

    def cursors(self, offsets: Sequence[int]) -> list[int]:
        """The same for all shards of this journal; a shard that is not named was not read yet."""
        return [self.cursor(shard, offsets[shard] if shard < len(offsets) else 0) for shard in range(len(self.heads))]

    def position(self, position: int) -> int | None:
        """Where exactly this message is now; None: it did not come along."""
        shard, offset = position >> OFFSET_BITS, position & _OFFSET_MASK
        if shard >= len(self._stretches):
            return None
        stretches = self._stretches[shard]
        index = bisect_right(stretches, offset, key=lambda stretch: stretch[0]) - 1
        if index < 0 or offset >= stretches[index][0] + stretches[index][2]:
            return None
        return position_of(shard, stretches[index][1] + offset - stretches[index][0])


def moved_session(state: SessionState, moves: Moves) -> tuple[SessionState, int]:
    """A detached session for the journal that took the messages, and how many of its window are left behind; changes
    it."""
    state.cursors = moves.cursors(state.cursors)
    state.seen = tuple(state.cursors)
    for name, record in state.subscriptions.items():
        if record.since is not None:
            state.subscriptions[name] = record._replace(since=tuple(moves.cursors(record.since)))
    left = 0
    for packet_id, entry in [*state.window.items()]:
        if entry.position == NOT_JOURNALED:
            continue
        position = moves.position(entry.position)
        if position is not None:
            state.window[packet_id] = entry._replace(position=position)
        elif entry.state == PUBCOMP_DUE:  # the client has the message; only its packet id is to be freed
            state.window[packet_id] = entry._replace(position=NOT_JOURNALED)
        else:
            del state.window[packet_id]
            left += 1
    return state, left


def moved_group(state: GroupState, moves: Moves) -> tuple[GroupState, int]:
    """The same for a shared group."""
    returned = [position for old in state.returned if (position := moves.position(old)) is not None]
    taken = [position for old in state.taken if (position := moves.position(old)) is not None]
    moved = GroupState(0, tuple(moves.cursors(state.cursors)), tuple(returned), tuple(taken))
    return moved, len(state.returned) - len(returned)
