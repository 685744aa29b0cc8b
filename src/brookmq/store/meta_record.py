"""The two small states beside the sessions: the node's epochs, and shared groups with kept members.

Both follow the rules of the sessions' records: a format number in front of states and changes, and changes that are
assignments (``session_ops``). A group's change is its whole state, as it is small; only of members that end while the
node does not know that state yet, what they leave is added to it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from brookmq.store.errors import BadRecord
from brookmq.store.session_record import check_end, check_format, put_offsets, take_offsets
from brookmq.store.session_state import EPOCHS_MAX, Epoch, GroupState, MetaState

EPOCH: Final = 32
WATERMARK: Final = 33
GROUP: Final = 48
GROUP_ENDED: Final = 49
GROUP_LEFT: Final = 50

_COUNT: Final = struct.Struct(">I")
_EPOCH: Final = struct.Struct(">Id")  # number, time
_EPOCH_STATE: Final = struct.Struct(">Idd")  # number, started_at, seen_at


def epoch(number: int, time: float, watermark_before: Sequence[int]) -> bytes:
    """The node has started. ``watermark_before`` is how far the epoch before really came, () when that is not known
    better than by its last watermark."""
    parts = [bytes((1, EPOCH)), _EPOCH.pack(number, time)]
    put_offsets(parts, watermark_before)
    return b"".join(parts)


def watermark(number: int, time: float, stored: Sequence[int]) -> bytes:
    """Everything below these offsets has been handed to every session that is live in this epoch."""
    parts = [bytes((1, WATERMARK)), _EPOCH.pack(number, time)]
    put_offsets(parts, stored)
    return b"".join(parts)


def fold_meta(meta: MetaState | None, op: bytes) -> MetaState:
    """The epochs after a change."""
    check_format(op, "a change of the epochs")
    kind = op[1] if len(op) > 1 else 0
    if kind not in (EPOCH, WATERMARK):
        raise BadRecord(f"a change of the epochs has kind {kind}, which is not known here")
    try:
        number, time = _EPOCH.unpack_from(op, 2)
        offsets, at = take_offsets(op, 2 + _EPOCH.size)
    except struct.error as error:
        raise BadRecord(f"a change of the epochs of {len(op)} bytes can't be read: {error}") from None
    check_end(op, at, "a change of the epochs")
    epochs = dict(meta.epochs) if meta is not None else {}
    if kind == WATERMARK:
        before = epochs.get(number)
        epochs[number] = Epoch(before.started_at if before is not None else time, time, offsets)
    else:
        if number - 1 in epochs and offsets:
            epochs[number - 1] = epochs[number - 1]._replace(watermark=offsets)
        epochs[number] = Epoch(time, time, ())
    if len(epochs) > EPOCHS_MAX:
        del epochs[min(epochs)]
    return MetaState(epochs)


def encode_meta(meta: MetaState) -> bytes:
    """All epochs."""
    parts = [b"\x01", _COUNT.pack(len(meta.epochs))]
    for number, each in meta.epochs.items():
        parts.append(_EPOCH_STATE.pack(number, each.started_at, each.seen_at))
        put_offsets(parts, each.watermark)
    return b"".join(parts)


def decode_meta(body: bytes) -> MetaState:
    """The epochs of these bytes."""
    check_format(body, "the epochs' state")
    epochs: dict[int, Epoch] = {}
    try:
        (count,) = _COUNT.unpack_from(body, 1)
        at = 1 + _COUNT.size
        for _ in range(count):
            number, started_at, seen_at = _EPOCH_STATE.unpack_from(body, at)
            offsets, at = take_offsets(body, at + _EPOCH_STATE.size)
            epochs[number] = Epoch(started_at, seen_at, offsets)
    except struct.error as error:
        raise BadRecord(f"the epochs' state of {len(body)} bytes can't be read: {error}") from None
    check_end(body, at, "the epochs' state")
    return MetaState(epochs)


# -- shared groups


def group(state: GroupState) -> bytes:
    """The group is this now."""
    return bytes((1, GROUP)) + encode_group(state)[1:]


def group_ended() -> bytes:
    """The group has no kept member any more."""
    return bytes((1, GROUP_ENDED))


def group_left(returned: Sequence[int], taken: Sequence[int]) -> bytes:
    """Members have ended: what they leave to others, and what nobody else gets."""
    parts = [bytes((1, GROUP_LEFT))]
    _put_positions(parts, returned)
    _put_positions(parts, taken)
    return b"".join(parts)


def fold_group(state: GroupState | None, op: bytes) -> GroupState | None:
    """The group after a change."""
    check_format(op, "a shared group's change")
    kind = op[1] if len(op) > 1 else 0
    if kind == GROUP:
        return _take_group(op, 2)
    if kind == GROUP_ENDED:
        return None
    if kind == GROUP_LEFT:
        return _add_left(state or GroupState(), op)
    raise BadRecord(f"a shared group's change has kind {kind}, which is not known here")


def encode_group(state: GroupState) -> bytes:
    """The whole state."""
    parts = [b"\x01", _COUNT.pack(state.live)]
    put_offsets(parts, state.cursors)
    _put_positions(parts, state.returned)
    _put_positions(parts, state.taken)
    return b"".join(parts)


def decode_group(body: bytes) -> GroupState:
    """The group of these bytes."""
    check_format(body, "a shared group's state")
    return _take_group(body, 1)


def _take_group(body: bytes, at: int) -> GroupState:
    try:
        (live,) = _COUNT.unpack_from(body, at)
        cursors, at = take_offsets(body, at + 4)
        returned, at = _take_positions(body, at)
        taken, at = _take_positions(body, at)
    except struct.error as error:
        raise BadRecord(f"a shared group's state of {len(body)} bytes can't be read: {error}") from None
    check_end(body, at, "a shared group's state")
    return GroupState(live, cursors, returned, taken)


def _add_left(state: GroupState, op: bytes) -> GroupState:
    try:
        returned, at = _take_positions(op, 2)
        taken, at = _take_positions(op, at)
    except struct.error as error:
        raise BadRecord(f"a shared group's change of {len(op)} bytes can't be read: {error}") from None
    check_end(op, at, "a shared group's change")
    return state._replace(
        returned=tuple(dict.fromkeys(state.returned + returned)), taken=tuple(dict.fromkeys(state.taken + taken))
    )


def _put_positions(parts: list[bytes], positions: Sequence[int]) -> None:
    parts.append(_COUNT.pack(len(positions)) + struct.pack(f">{len(positions)}Q", *positions))


def _take_positions(body: bytes, at: int) -> tuple[tuple[int, ...], int]:
    (count,) = _COUNT.unpack_from(body, at)
    return struct.unpack_from(f">{count}Q", body, at + 4), at + 4 + 8 * count
