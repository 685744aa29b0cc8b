"""Changes of sessions, as they stand in the session log, and how a state comes of them.

Every change is an *assignment*: it says what is so now, never "one more". A snapshot may be newer than the place in the
log that it names, so that changes which it has in it already are applied again: that must lead to the same state. (It
does as long as they are applied in their order, up to the last one.)

A change is its format number (1), its kind, then its fields. Only STATE makes a session: every other change over none
belongs to one that has ended, and is void. If CONNECTED made one as well, what is void would come to life when it is
applied again.

What has no change of its own: a message that the client has acknowledged leaves the window with the next DYNAMIC, which
the broker writes every second for all sessions that moved. Until then a crash makes a redelivery, never a loss.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from brookmq.store.errors import BadRecord
from brookmq.store.session_record import (
    check_end,
    check_format,
    put_dynamic,
    put_scalars,
    put_subscriptions,
    take_dynamic,
    take_scalars,
    take_state,
    take_subscriptions,
)
from brookmq.store.session_record import encode_state as _encode_state
from brookmq.store.session_state import (
    NOT_JOURNALED,
    InlineDelivery,
    SessionState,
    SubscriptionRecord,
    WindowEntry,
)
from brookmq.store.window_record import encode_run, put_inline, put_runs, put_window, take_inline, take_window

FORMAT: Final = 1

STATE: Final = 1
CONNECTED: Final = 2
SUBSCRIBED: Final = 3
UNSUBSCRIBED: Final = 4
DYNAMIC: Final = 5
SENT: Final = 6
RECEIVED: Final = 7
OPENED: Final = 8
RELEASED: Final = 9
DISCONNECTED: Final = 10
WILL_TAKEN: Final = 11
WILL_DROPPED: Final = 12
ENDED: Final = 13

NO_SHARD: Final = 0xFFFF  # SENT: nothing of it came from the journal
PUBREC_DUE: Final = 2
PUBCOMP_DUE: Final = 3

_SENT: Final = struct.Struct(">HQB")  # shard, cursor, whether messages follow by value
_PAIR: Final = struct.Struct(">Hq")  # packet id, position
_DISCONNECTED: Final = struct.Struct(">ddd")  # at, will_due, expiry
_LENGTH: Final = struct.Struct(">H")

_NOTHING_INLINE: Final[Mapping[int, InlineDelivery]] = {}


def _head(kind: int) -> bytes:
    return bytes((FORMAT, kind))


# -- making them


def state(session: SessionState) -> bytes:
    """The session is this, whatever was known of it: the first change of every new session."""
    return _head(STATE) + _encode_state(session)[1:]


def connected(session: SessionState) -> bytes:
    """The client of a session that is there has connected again: names, times, expiry and will are those of
    ``session``, the rest stays."""
    parts = [_head(CONNECTED)]
    put_scalars(parts, session)
    return b"".join(parts)


def subscribed(subscriptions: Collection[SubscriptionRecord]) -> bytes:
    """These subscriptions are there, instead of those with the same filter."""
    parts = [_head(SUBSCRIBED)]
    put_subscriptions(parts, subscriptions)
    return b"".join(parts)


def unsubscribed(filters: Iterable[str]) -> bytes:
    """The filters, as the client gave them, are there no more."""
    parts = [_head(UNSUBSCRIBED)]
    for topic_filter in filters:
        name = topic_filter.encode()
        parts += (_LENGTH.pack(len(name)), name)
    return b"".join(parts)


def dynamic(
    live: int,
    cursors: Sequence[int],
    window: Collection[WindowEntry] = (),
    inline: Mapping[int, InlineDelivery] = _NOTHING_INLINE,
    open_ids: Mapping[int, int] | None = None,
    seen: Sequence[int] = (),
    released: Collection[int] = (),
) -> bytes:
    """How far the session is, and all that is under way, in both directions."""
    parts = [_head(DYNAMIC)]
    put_dynamic(parts, live, cursors, window, inline, open_ids or {}, seen, released)
    return b"".join(parts)


def sent(
    shard: int,
    cursor: int,
    entries: Iterable[WindowEntry],
    inline: Mapping[int, InlineDelivery] = _NOTHING_INLINE,
) -> bytes:
    """About to be sent: the entries are in the window, behind all others, and ``cursor`` is the shard's. ``NO_SHARD``:
    all of them are given by value."""
    parts = [_head(SENT), _SENT.pack(shard, cursor, bool(inline))]
    put_window(parts, entries)
    if inline:
        put_inline(parts, inline)
    return b"".join(parts)


def sent_run(shard: int, cursor: int, state: int, ids: bytes, position: int, group: bytes = b"") -> bytes:
    """The same for messages with consecutive positions; ``ids`` are packet ids as they stand in packets."""
    groups = [group] if group else []
    parts = [_head(SENT), _SENT.pack(shard, cursor, False)]
    put_runs(parts, groups, 1, [encode_run(state | 8 if group else state, position, ids, 0)])
    return b"".join(parts)


def received(ids: bytes) -> bytes:
    """PUBREC came for these packet ids (two bytes each)."""
    return _head(RECEIVED) + ids


def opened(ids: bytes) -> bytes:
    """Inbound QoS 2 packet ids of messages that no journal has."""
    return _head(OPENED) + ids


def released(pairs: Iterable[tuple[int, int]]) -> bytes:
    """PUBREL came: packet ids that are free, each with the position of its message."""
    return _head(RELEASED) + b"".join([_PAIR.pack(packet_id, position) for packet_id, position in pairs])


def disconnected(at: float, will_due: float, expiry: float, progress: bytes) -> bytes:
    """The client has left, and got as far as ``progress`` (a DYNAMIC) says. ``will_due`` 0.0: there is no will, or the
    client took it back. ``expiry`` may be new, as a DISCONNECT can change it."""
    return _head(DISCONNECTED) + _DISCONNECTED.pack(at, will_due, expiry) + progress[2:]


def will_taken() -> bytes:
    """The will is about to be published."""
    return _head(WILL_TAKEN)


def will_dropped() -> bytes:
    """The will has been published, or must not be."""
    return _head(WILL_DROPPED)


def ended() -> bytes:
    """There is no session any more."""
    return _head(ENDED)


# -- applying them


def fold(session: SessionState | None, op: bytes) -> SessionState | None:
    """The session after a change. It may be the same object, changed: who needs the one before makes it anew."""
    check_format(op, "a session's change")
    kind = op[1] if len(op) > 1 else 0
    try:
        if kind == STATE:
            return take_state(op, 2)
        if kind == ENDED:
            return None
        apply = _CHANGES.get(kind)
        if apply is None:
            raise BadRecord(f"a session's change has kind {kind}, which is not known here")
        if session is not None:
            apply(session, op)
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise BadRecord(f"a session's change of kind {kind} and {len(op)} bytes can't be read: {error}") from None
    return session


def _connected(session: SessionState, op: bytes) -> None:
    check_end(op, take_scalars(op, 2, session), "a session's change")


def _subscribed(session: SessionState, op: bytes) -> None:
    subscriptions, at = take_subscriptions(op, 2)
    check_end(op, at, "a session's change")
    session.subscriptions.update(subscriptions)


def _unsubscribed(session: SessionState, op: bytes) -> None:
    at = 2
    while at < len(op):
        (length,) = _LENGTH.unpack_from(op, at)
        at += 2 + length
        session.subscriptions.pop(op[at - length : at].decode(), None)
    check_end(op, at, "a session's change")


def _dynamic(session: SessionState, op: bytes) -> None:
    take_dynamic(op, 2, session)


def _sent(session: SessionState, op: bytes) -> None:
    shard, cursor, by_value = _SENT.unpack_from(op, 2)
    entries, at = take_window(op, 2 + _SENT.size)
    inline: dict[int, InlineDelivery] = {}
    if by_value:
        inline, at = take_inline(op, at)
    check_end(op, at, "a session's change")
    if shard != NO_SHARD:
        cursors = session.cursors
        cursors.extend([0] * (shard + 1 - len(cursors)))
        cursors[shard] = cursor
    for packet_id, entry in entries.items():
        session.window.pop(packet_id, None)  # what had this id is finished, and what is sent now is the last
        session.window[packet_id] = entry
        session.inline.pop(packet_id, None)
    session.inline.update(inline)


def _received(session: SessionState, op: bytes) -> None:
    for packet_id in _ids(op):
        entry = session.window.get(packet_id)
        if entry is not None and entry.state in (PUBREC_DUE, PUBCOMP_DUE):
            session.window[packet_id] = entry._replace(state=PUBCOMP_DUE)
            session.inline.pop(packet_id, None)  # the message is the client's now


def _opened(session: SessionState, op: bytes) -> None:
    for packet_id in _ids(op):
        session.open_ids[packet_id] = NOT_JOURNALED


def _released(session: SessionState, op: bytes) -> None:
    for packet_id, position in _PAIR.iter_unpack(op[2:]):
        session.open_ids.pop(packet_id, None)
        if position != NOT_JOURNALED:
            session.released.add(position)


def _disconnected(session: SessionState, op: bytes) -> None:
    session.connected = 0
    session.disconnected_at, session.will_due, session.expiry = _DISCONNECTED.unpack_from(op, 2)
    if session.will_due == 0.0:
        _will_dropped(session, op)
    take_dynamic(op, 2 + _DISCONNECTED.size, session)


def _will_taken(session: SessionState, _: bytes) -> None:
    session.will_taken = True


def _will_dropped(session: SessionState, _: bytes) -> None:
    session.will, session.will_due, session.will_taken = None, 0.0, False


def _ids(op: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(op) // 2 - 1}H", op[2:])


_CHANGES: Final[dict[int, Callable[[SessionState, bytes], None]]] = {
    CONNECTED: _connected,
    SUBSCRIBED: _subscribed,
    UNSUBSCRIBED: _unsubscribed,
    DYNAMIC: _dynamic,
    SENT: _sent,
    RECEIVED: _received,
    OPENED: _opened,
    RELEASED: _released,
    DISCONNECTED: _disconnected,
    WILL_TAKEN: _will_taken,
    WILL_DROPPED: _will_dropped,
}
