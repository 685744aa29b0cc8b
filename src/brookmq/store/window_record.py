"""A session's window as bytes: what was handed out and is not finished.

It is written in runs: messages that went out together have one state and consecutive positions, and their packet ids
follow each other as they stand in the packets. The keys of shared groups stand once, in front. Messages that are in no
journal follow by value, in a block of their own.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from brookmq.store.message_record import decode_message, encode_message
from brookmq.store.session_state import NOT_JOURNALED, InlineDelivery, WindowEntry

_COUNT: Final = struct.Struct(">I")
_SHORT: Final = struct.Struct(">H")
_RUN: Final = struct.Struct(">BHq")  # state 3 | dup 4 | grouped 8, count, position of the first
_INLINE: Final = struct.Struct(">HBHI")  # packet id, QoS 3 | retain 4, lengths of identifiers and message


def put_window(parts: list[bytes], window: Iterable[WindowEntry]) -> None:
    """Entries in their order, as runs; the keys of shared groups stand once, in front."""
    groups: dict[bytes, int] = {}
    runs: list[bytes] = []
    count = 0
    ids: list[int] = []
    flags = first = following = -1
    key = b""
    for packet_id, state, position, dup, group in window:
        entry_flags = state | (4 if dup else 0) | (8 if group else 0)
        if entry_flags != flags or position != following or group != key or len(ids) == 0xFFFF:
            if ids:
                runs.append(_run(flags, first, ids, groups.get(key, 0)))
                count += 1
            ids = []
            flags, first, key = entry_flags, position, group
            if group and group not in groups:
                groups[group] = len(groups)
        following = position + 1 if position >= 0 else NOT_JOURNALED
        ids.append(packet_id)
    if ids:
        runs.append(_run(flags, first, ids, groups.get(key, 0)))
        count += 1
    put_runs(parts, groups, count, runs)


def put_runs(parts: list[bytes], groups: Collection[bytes], count: int, runs: Iterable[bytes]) -> None:
    """The window block around runs that are encoded already."""
    parts.append(_SHORT.pack(len(groups)))
    for group in groups:
        parts += (_COUNT.pack(len(group)), group)
    parts.append(_COUNT.pack(count))
    parts += runs


def _run(flags: int, first: int, ids: list[int], group: int) -> bytes:
    return encode_run(flags, first, struct.pack(f">{len(ids)}H", *ids), group)


def encode_run(flags: int, first: int, ids: bytes, group: int) -> bytes:
    """One run; ``ids`` are packet ids of two bytes each."""
    head = _RUN.pack(flags, len(ids) // 2, first)
    return head + _SHORT.pack(group) + ids if flags & 8 else head + ids


def take_window(body: bytes, at: int) -> tuple[dict[int, WindowEntry], int]:
    """By packet id, in their order."""
    (group_count,) = _SHORT.unpack_from(body, at)
    at += 2
    groups: list[bytes] = []
    for _ in range(group_count):
        (length,) = _COUNT.unpack_from(body, at)
        at += 4 + length
        groups.append(body[at - length : at])
    (runs,) = _COUNT.unpack_from(body, at)
    at += 4
    window: dict[int, WindowEntry] = {}
    for _ in range(runs):
        flags, count, position = _RUN.unpack_from(body, at)
        at += _RUN.size
        group = b""
        if flags & 8:
            group = groups[_SHORT.unpack_from(body, at)[0]]
            at += 2
        state, dup = flags & 3, flags & 4 != 0
        step = 1 if position >= 0 else 0
        for packet_id in struct.unpack_from(f">{count}H", body, at):
            window.pop(packet_id, None)
            window[packet_id] = WindowEntry(packet_id, state, position, dup, group)
            position += step
        at += 2 * count
    return window, at


def put_inline(parts: list[bytes], inline: Mapping[int, InlineDelivery]) -> None:
    """Messages of the window that are in no journal."""
    parts.append(_SHORT.pack(len(inline)))
    for packet_id, delivery in inline.items():
        message = encode_message(delivery.message)
        flags = delivery.qos | (4 if delivery.retain else 0)
        parts += (
            _INLINE.pack(packet_id, flags, len(delivery.identifiers), len(message)),
            delivery.identifiers,
            message,
        )


def take_inline(body: bytes, at: int) -> tuple[dict[int, InlineDelivery], int]:
    """By packet id."""
    (count,) = _SHORT.unpack_from(body, at)
    at += 2
    inline: dict[int, InlineDelivery] = {}
    for _ in range(count):
        packet_id, flags, identifiers, length = _INLINE.unpack_from(body, at)
        at += _INLINE.size
        message_at = at + identifiers
        end = message_at + length
        message = decode_message(body[message_at:end])
        inline[packet_id] = InlineDelivery(message, flags & 3, flags & 4 != 0, body[at:message_at])
        at = end
    return inline, at
