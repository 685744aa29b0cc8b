"""A session's state as bytes, whole (in snapshots) and in the blocks that its changes are made of.

A state is its format number (1), then three blocks: scalars, subscriptions, dynamic. Numbers are big endian; texts have
their length in front, counts and lengths are as wide as MQTT allows them to be. Absent things take no bytes but a bit:
a typical absent session with two subscriptions has some 180 bytes, and a million of them are read at start, so reading
one is a handful of ``unpack_from`` and slices: 4 µs (compiled code gains nothing here).

Every reading function takes the body and where to begin, and returns what it read with where it ended. A body that ends
too early is noticed where the last block must end with it.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Final

from brookmq.store.errors import BadRecord
from brookmq.store.message_record import decode_message, encode_message
from brookmq.store.session_state import InlineDelivery, SessionState, SubscriptionRecord, WillRecord, WindowEntry
from brookmq.store.window_record import put_inline, put_window, take_inline, take_window

FORMAT: Final = 1

# version, flags, expiry, created_at, connected, connect_number, disconnected_at, will_due, lengths of client id, user
# name and mount point
_SCALARS: Final = struct.Struct(">BBddIQddHHI")
_NAMED: Final = 1  # flags
_WILL: Final = 2
_WILL_TAKEN: Final = 4
_WILL_HEAD: Final = struct.Struct(">Iq I")  # delay, expiry or -1, length of the message

_COUNT: Final = struct.Struct(">I")
_SHORT: Final = struct.Struct(">H")
_SUBSCRIPTION: Final = struct.Struct(">BBH")  # options, more, length of the filter
_INDEXED_SAME: Final = 0x40  # options: QoS 3, no local 4, retain as published 8, retain handling 0x30
_REPLAYING: Final = 0x80
_SINCE: Final = 0x80  # more: the number of identifiers, and this

_DYNAMIC: Final = struct.Struct(">IHB")  # live, number of shards, which of the following are there
_HAS_WINDOW: Final = 1
_HAS_INLINE: Final = 2
_HAS_OPEN: Final = 4
_HAS_SEEN: Final = 8
_HAS_RELEASED: Final = 16

_OPEN: Final = struct.Struct(">Hq")

_NO_OFFSETS: Final[tuple[int, ...]] = ()


@cache
def _numbers(count: int, code: str) -> struct.Struct:
    return struct.Struct(f">{count}{code}")


def encode_state(state: SessionState) -> bytes:
    """The whole state."""
    parts = [b"\x01"]
    put_scalars(parts, state)
    put_subscriptions(parts, state.subscriptions.values())
    put_dynamic(
        parts,
        state.live,
        state.cursors,
        state.window.values(),
        state.inline,
        state.open_ids,
        state.seen,
        state.released,
    )
    return b"".join(parts)


def decode_state(body: bytes) -> SessionState:
    """The state of these bytes; BadRecord when they are none, or of a newer format."""
    check_format(body, "a session's state")
    try:
        return take_state(body, 1)
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise BadRecord(f"a session's state of {len(body)} bytes can't be read: {error}") from None


def take_state(body: bytes, at: int) -> SessionState:
    """A state that fills the rest of a body."""
    state = SessionState("")
    at = take_scalars(body, at, state)
    state.subscriptions, at = take_subscriptions(body, at)
    take_dynamic(body, at, state)
    return state


def check_format(body: bytes, what: str) -> None:
    """Refuse what a newer version wrote, by its number."""
    if body[:1] != b"\x01":
        found = f"format {body[0]}" if body else "no format number"
        raise BadRecord(f"{what} has {found}, which is not known here ({FORMAT} is)")


def check_end(body: bytes, at: int, what: str) -> None:
    """A body must end where its last block ends."""
    if at != len(body):
        raise BadRecord(f"{what} has {len(body)} bytes, its fields take {at}")


# -- scalars


def put_scalars(parts: list[bytes], state: SessionState) -> None:
    """Everything that a CONNECT decides."""
    client_id = state.client_id.encode()
    username = b"" if state.username is None else state.username.encode()
    will = state.will
    flags = (_NAMED if state.username is not None else 0) | (_WILL if will is not None else 0)
    parts.append(
        _SCALARS.pack(
            state.version,
            flags | (_WILL_TAKEN if state.will_taken else 0),
            state.expiry,
            state.created_at,
            state.connected,
            state.connect_number,
            state.disconnected_at,
            state.will_due,
            len(client_id),
            len(username),
            len(state.mount),
        )
    )
    parts += (client_id, username, state.mount)
    if will is not None:
        message = encode_message(will.message)
        parts += (_WILL_HEAD.pack(will.delay, -1 if will.expiry is None else will.expiry, len(message)), message)


def take_scalars(body: bytes, at: int, state: SessionState) -> int:
    """Into a state that is there; returns where they ended."""
    (
        state.version,
        flags,
        state.expiry,
        state.created_at,
        state.connected,
        state.connect_number,
        state.disconnected_at,
        state.will_due,
        client_id,
        username,
        mount,
    ) = _SCALARS.unpack_from(body, at)
    at += _SCALARS.size
    end = at + client_id
    state.client_id = body[at:end].decode()
    at = end + username
    state.username = body[end:at].decode() if flags & _NAMED else None
    state.mount = body[at : at + mount]
    at += mount
    state.will_taken = bool(flags & _WILL_TAKEN)
    state.will = None
    if flags & _WILL:
        delay, expiry, length = _WILL_HEAD.unpack_from(body, at)
        at += _WILL_HEAD.size
        end = at + length
        state.will = WillRecord(decode_message(body[at:end]), delay, None if expiry < 0 else expiry)
        at = end
    return at


# -- subscriptions


def put_subscriptions(parts: list[bytes], subscriptions: Collection[SubscriptionRecord]) -> None:
    """Their number, then each of them."""
    parts.append(_COUNT.pack(len(subscriptions)))
    for record in subscriptions:
        name = record.filter.encode()
        same = record.indexed == name
        options = record.qos | record.no_local << 2 | record.retain_as_published << 3 | record.retain_handling << 4
        options |= (_INDEXED_SAME if same else 0) | (_REPLAYING if record.replaying else 0)
        identifiers, since = record.identifiers, record.since
        more = len(identifiers) | (_SINCE if since is not None else 0)
        parts += (_SUBSCRIPTION.pack(options, more, len(name)), name)
        if not same:
            parts += (_COUNT.pack(len(record.indexed)), record.indexed)
        if more:
            parts.append(_numbers(len(identifiers), "I").pack(*identifiers))
            if since is not None:
                put_offsets(parts, since)


def take_subscriptions(body: bytes, at: int) -> tuple[dict[str, SubscriptionRecord], int]:
    """By the filter that the client gave."""
    (count,) = _COUNT.unpack_from(body, at)
    at += 4
    found: dict[str, SubscriptionRecord] = {}
    for _ in range(count):
        options, more, length = _SUBSCRIPTION.unpack_from(body, at)
        at += 4
        end = at + length
        indexed = body[at:end]
        name = indexed.decode()
        at = end
        if not options & _INDEXED_SAME:
            (length,) = _COUNT.unpack_from(body, at)
            at += 4 + length
            indexed = body[at - length : at]
        identifiers: tuple[int, ...] = ()
        since: tuple[int, ...] | None = None
        if more:
            numbers = _numbers(more & 0x7F, "I")
            identifiers = numbers.unpack_from(body, at)
            at += numbers.size
            if more & _SINCE:
                since, at = take_offsets(body, at)
        found[name] = SubscriptionRecord(
            name,
            indexed,
            options & 3,
            options & 4 != 0,
            options & 8 != 0,
            options >> 4 & 3,
            identifiers,
            since,
            options & _REPLAYING != 0,
        )
    return found, at


# -- dynamic: how far it is, what is under way


def put_dynamic(
    parts: list[bytes],
    live: int,
    cursors: Sequence[int],
    window: Collection[WindowEntry],
    inline: Mapping[int, InlineDelivery],
    open_ids: Mapping[int, int],
    seen: Sequence[int],
    released: Collection[int],
) -> None:
    """What changes with every message."""
    has = (
        (_HAS_WINDOW if window else 0)
        | (_HAS_INLINE if inline else 0)
        | (_HAS_OPEN if open_ids else 0)
        | (_HAS_SEEN if seen else 0)
        | (_HAS_RELEASED if released else 0)
    )
    parts.append(_DYNAMIC.pack(live, len(cursors), has))
    parts.append(_numbers(len(cursors), "Q").pack(*cursors))
    if not has:
        return
    if window:
        put_window(parts, window)
    if inline:
        put_inline(parts, inline)
    if open_ids:
        parts.append(_COUNT.pack(len(open_ids)))
        parts += [_OPEN.pack(packet_id, position) for packet_id, position in open_ids.items()]
    if seen:
        put_offsets(parts, seen)
    if released:
        parts.append(_COUNT.pack(len(released)))
        parts += [position.to_bytes(8, "big") for position in sorted(released)]


def take_dynamic(body: bytes, at: int, state: SessionState) -> None:
    """Into a state that is there; it must fill the rest of the body."""
    state.live, shards, has = _DYNAMIC.unpack_from(body, at)
    at += _DYNAMIC.size
    cursors = _numbers(shards, "Q")
    state.cursors = [*cursors.unpack_from(body, at)]
    at += cursors.size
    state.window, state.inline, state.open_ids, state.seen, state.released = {}, {}, {}, _NO_OFFSETS, set()
    if has:
        if has & _HAS_WINDOW:
            state.window, at = take_window(body, at)
        if has & _HAS_INLINE:
            state.inline, at = take_inline(body, at)
        if has & _HAS_OPEN:
            (count,) = _COUNT.unpack_from(body, at)
            end = at + 4 + count * _OPEN.size
            state.open_ids = dict(_OPEN.iter_unpack(body[at + 4 : end]))
            at = end
        if has & _HAS_SEEN:
            state.seen, at = take_offsets(body, at)
        if has & _HAS_RELEASED:
            (count,) = _COUNT.unpack_from(body, at)
            state.released = set(_numbers(count, "Q").unpack_from(body, at + 4))
            at += 4 + 8 * count
    check_end(body, at, "a session's state")


def put_offsets(parts: list[bytes], offsets: Sequence[int]) -> None:
    """One offset for each shard, their number in front."""
    parts.append(_SHORT.pack(len(offsets)) + _numbers(len(offsets), "Q").pack(*offsets))


def take_offsets(body: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """As they were put."""
    (count,) = _SHORT.unpack_from(body, at)
    return _numbers(count, "Q").unpack_from(body, at + 2), at + 2 + 8 * count
