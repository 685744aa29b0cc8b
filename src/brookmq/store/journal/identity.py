"""What a journal is called, and which capture filters its batches can be found by; kept with its first stream.

*Identity*: made once, with the journal. Offsets mean nothing in another one, so who keeps a position keeps this, too.

*Capture filters*: a batch names the capture filters that matched something in it by their ids, whatever the
configuration says later. So all filters that were ever configured are remembered, with the offsets from which on
batches name them: before those, batches are of a version that did not, or of filters that were too many to remember.
It is written down before the first message is taken that could be found by a new filter.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

from brookmq.mqtt.overlap import overlap
from brookmq.store.errors import BadRecord
from brookmq.store.journal.seeking import stream_name
from brookmq.store.link import Link

KEY: Final = "brookmq.journal"  # in the metadata of the first stream
FORMAT: Final = 1
IDENTITY_BYTES: Final = 8
CAPTURES_BYTES_MAX: Final = 32 * 1024  # of all filters, as JSON; the store allows a stream four times as much


@dataclass(frozen=True, slots=True)
class JournalIdentity:
    """``captures`` None: they were too many, so that nothing can be said by them."""

    name: str
    captures: tuple[str, ...] | None
    since: tuple[int, ...]  # for each shard: from this offset on batches have the ids of ``captures``

    def ids_for(self, filters: Sequence[str]) -> frozenset[int] | None:
        """The ids by which batches are found that may have captured something for these filters; None: all may."""
        if self.captures is None:
            return None
        found = [capture for capture in self.captures if any(overlap(capture, filter) for filter in filters)]
        return frozenset(crc32(capture.encode()) for capture in found)


async def settle_identity(link: Link, capture: Sequence[str], heads: Sequence[int]) -> JournalIdentity:
    """The identity of a journal whose shards were opened and end at ``heads``, with these capture filters from now on.

    Raises ``StoreError``.
    """
    stream = stream_name(0)
    config = (await link.api(f"STREAM.INFO.{stream}"))["config"]
    text = (config.get("metadata") or {}).get(KEY, "")
    known = _decoded(text) if text else None
    wanted = _with_captures(known, tuple(dict.fromkeys(capture)), tuple(heads))
    if wanted != known:
        config["metadata"] = (config.get("metadata") or {}) | {KEY: _encoded(wanted)}
        await link.api(f"STREAM.UPDATE.{stream}", config)
    return wanted


def _with_captures(known: JournalIdentity | None, capture: tuple[str, ...], heads: tuple[int, ...]) -> JournalIdentity:
    if known is None:
        return _bounded(JournalIdentity(secrets.token_hex(IDENTITY_BYTES), capture, heads))
    if known.captures is None:
        return _bounded(JournalIdentity(known.name, capture, heads))
    both = JournalIdentity(known.name, tuple(dict.fromkeys(known.captures + capture)), known.since)
    # Too many over the years: those of now are remembered, and what is older is read whole.
    return both if _fits(both) else _bounded(JournalIdentity(known.name, capture, heads))


def _bounded(identity: JournalIdentity) -> JournalIdentity:
    return identity if _fits(identity) else JournalIdentity(identity.name, None, identity.since)


def _fits(identity: JournalIdentity) -> bool:
    return len(_encoded(identity)) <= CAPTURES_BYTES_MAX


def _encoded(identity: JournalIdentity) -> str:
    fields = {
        "format": FORMAT,
        "name": identity.name,
        "captures": None if identity.captures is None else list(identity.captures),
        "since": list(identity.since),
    }
    return json.dumps(fields, separators=(",", ":"))


def _decoded(text: str) -> JournalIdentity:
    try:
        fields: dict[str, Any] = json.loads(text)
        number = fields["format"]
        captures = fields["captures"]
        identity = JournalIdentity(
            str(fields["name"]),
            None if captures is None else tuple(map(str, captures)),
            tuple(map(int, fields["since"])),
        )
    except (ValueError, TypeError, LookupError):
        raise BadRecord(f"{stream_name(0)}: what the journal is called can't be read: {text[:100]!r}") from None
    if number != FORMAT:
        raise BadRecord(f"{stream_name(0)}: what the journal is called has format {number}; {FORMAT} is known here")
    return identity
