"""Mends what a kill can leave of the store's files: a stream's settings whose checksum is that of the settings before.

The server writes a stream's settings (``meta.inf``) and then their checksum (``meta.sum``), each as a whole. Killed in
between, it does not take the stream for one of its own any more at the next start, with all that is in it (seen with
2.15.1). The settings are whole, so the checksum is made anew here, before the server starts. It is a HighwayHash of 64
bits, with the SHA-256 of the stream's name as key.
"""

from __future__ import annotations

import hashlib
import json
import logging
import struct
from pathlib import Path
from typing import Final

from brookmq.store.folder import write_file

log = logging.getLogger("brookmq.store")

SETTINGS: Final = "meta.inf"
CHECKSUM: Final = "meta.sum"

_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_LOW: Final = 0xFFFF_FFFF
_START_0: Final = (0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3)
_START_1: Final = (0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377)
_PACKET: Final = 32
_FINAL_ROUNDS: Final = 4


def mend_streams(path: Path) -> list[str]:
    """Mends the streams in the store's folder; the names of those that needed it."""
    mended: list[str] = []
    for settings in sorted(path.glob(f"jetstream/*/streams/*/{SETTINGS}")):
        body, checksum = settings.read_bytes(), settings.with_name(CHECKSUM)
        try:
            name = str(json.loads(body)["name"])
        except (ValueError, TypeError, LookupError):
            continue  # not ours to judge: the server says what it thinks of it
        right = checksum_of(name, body)
        known = checksum.read_text("ascii", "replace").strip() if checksum.exists() else ""
        if known != right:
            write_file(checksum, right)
            log.warning("the store was killed while it wrote the settings of stream %s: mended", name)
            mended.append(name)
    return mended


def checksum_of(name: str, body: bytes) -> str:
    """As the server writes it."""
    return highway_hash(hashlib.sha256(name.encode()).digest(), body).to_bytes(8, "little").hex()


def highway_hash(key: bytes, data: bytes) -> int:
    """HighwayHash of 64 bits."""
    state = _Highway(struct.unpack("<4Q", key))
    whole = len(data) - len(data) % _PACKET
    for at in range(0, whole, _PACKET):
        state.update(struct.unpack_from("<4Q", data, at))
    if rest := data[whole:]:
        state.update_rest(rest)
    return state.finish()


class _Highway:
    """Four lanes of 64 bits each, four times."""

    def __init__(self, key: tuple[int, ...]) -> None:
        self._mul0, self._mul1 = list(_START_0), list(_START_1)
        self._v0 = [start ^ lane for start, lane in zip(_START_0, key, strict=True)]
        self._v1 = [start ^ _swapped(lane) for start, lane in zip(_START_1, key, strict=True)]

    def update(self, lanes: tuple[int, ...]) -> None:
        v0, v1, mul0, mul1 = self._v0, self._v1, self._mul0, self._mul1
        for i in range(4):
            v1[i] = (v1[i] + mul0[i] + lanes[i]) & _MASK
            mul0[i] ^= (v1[i] & _LOW) * (v0[i] >> 32)
            v0[i] = (v0[i] + mul1[i]) & _MASK
            mul1[i] ^= (v0[i] & _LOW) * (v1[i] >> 32)
        for at in (0, 2):
            _merge(v1[at + 1], v1[at], v0, at)
        for at in (0, 2):
            _merge(v0[at + 1], v0[at], v1, at)

    def update_rest(self, rest: bytes) -> None:
        """The last bytes, fewer than a packet has."""
        size = len(rest)
        for i in range(4):
            self._v0[i] = (self._v0[i] + (size << 32) + size) & _MASK
            self._v1[i] = _rotated_halves(self._v1[i], size)
        packet = bytearray(_PACKET)
        words = size & ~3
        packet[:words] = rest[:words]
        tail = rest[words:]
        if size & 16:
            packet[28:32] = rest[size - 4 :]
        elif tail:
            packet[16] = tail[0]
            packet[17] = tail[len(tail) >> 1]
            packet[18] = tail[-1]
        self.update(struct.unpack("<4Q", packet))

    def finish(self) -> int:
        for _ in range(_FINAL_ROUNDS):
            v0 = self._v0
            self.update((_swapped(v0[2]), _swapped(v0[3]), _swapped(v0[0]), _swapped(v0[1])))
        return (self._v0[0] + self._v1[0] + self._mul0[0] + self._mul1[0]) & _MASK


def _swapped(lane: int) -> int:
    return lane >> 32 | (lane & _LOW) << 32


def _rotated_halves(lane: int, count: int) -> int:
    low, high = lane & _LOW, lane >> 32
    low = (low << count | low >> (32 - count)) & _LOW
    high = (high << count | high >> (32 - count)) & _LOW
    return high << 32 | low


def _merge(v1: int, v0: int, add: list[int], at: int) -> None:
    """Adds the bytes of two lanes, mixed in an order of their own, to two others."""
    add[at] += (
        ((v0 & 0xFF000000) | (v1 & 0xFF00000000)) >> 24
        | ((v0 & 0xFF0000000000) | (v1 & 0xFF000000000000)) >> 16
        | v0 & 0xFF0000
        | (v0 & 0xFF00) << 32
        | (v1 & 0xFF00000000000000) >> 8
        | v0 << 56 & _MASK
    )
    add[at + 1] += (
        ((v1 & 0xFF000000) | (v0 & 0xFF00000000)) >> 24
        | v1 & 0xFF0000
        | (v1 & 0xFF0000000000) >> 16
        | (v1 & 0xFF00) << 24
        | (v0 & 0xFF000000000000) >> 8
        | (v1 & 0xFF) << 48
        | v0 & 0xFF00000000000000
    )
    add[at] &= _MASK
    add[at + 1] &= _MASK
