"""Where a shard ends, as its stream tells who has just seized it.

After that nobody else appends, so one look at the last record of each of its subjects tells all: the last batch has
the head, the last summary of each part how far the index reaches. They come in one answer together with our own
ownership record, which proves that the replica that answered has everything before it.

A journal whose records have all aged away still must not give an offset twice: cursors of sessions name them. So the
stream's metadata has a *mark*, an offset with its sequence, and the head is then set behind all that can have been
appended since.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from brookmq.store.errors import Ambiguous
from brookmq.store.journal.batch import decode_filters
from brookmq.store.journal.postings import PARTS
from brookmq.store.journal.seeking import batches_subject, summaries_subject
from brookmq.store.journal.summary import SUMMARY, Summary
from brookmq.store.link import Link
from brookmq.store.log import ownership_subject
from brookmq.store.reader import STALE_PAUSE_S, Lanes
from brookmq.store.record import DATA, HEADER_BYTES, OWNERSHIP, decode_header
from brookmq.store.streams import NANOSECONDS, state_of

MESSAGES_PER_RECORD_MAX: Final = 65_536  # a batch has 256 KiB, or is one run of at most 500 messages
TAIL_TIME_LIMIT_S: Final = 10.0  # longer than an election
MARK: Final = "brookmq.mark"
HELD: Final = "brookmq.held"  # readers hold the age limit back, and the node removes what is too old


@dataclass(slots=True)
class Tail:
    """The end of a shard."""

    head: int = 0  # the offset behind the last message that was ever stored, or a higher one
    last: int = 0  # sequence of the last batch; 0 when there is none
    summaries: list[Summary] = field(default_factory=list)  # the last one of each part that has any


async def read_tail(lanes: Lanes, shard: int, term: int) -> Tail:
    """The end of a shard that was seized with this term."""
    subject = batches_subject(shard)
    subjects = [subject, ownership_subject(subject), summaries_subject(shard, "*")]
    loop = asyncio.get_running_loop()
    deadline = loop.time() + TAIL_TIME_LIMIT_S
    while True:
        tail = Tail()
        current = False
        for sequence, record in await lanes.last_of(subjects, PARTS + 2):
            kind = decode_header(record, sequence).kind
            if kind == DATA:
                tail.head = decode_filters(shard, sequence, record[HEADER_BYTES:])[1]
                tail.last = sequence
            elif kind == SUMMARY:
                what = f"{lanes.stream}, the summary at {sequence}"
                tail.summaries.append(Summary(record[HEADER_BYTES:], what))
            elif kind == OWNERSHIP:
                current = sequence >= term
        if current:
            break
        if loop.time() > deadline:
            raise Ambiguous(f"{lanes.stream}: no replica has our ownership record at {term}")
        await asyncio.sleep(STALE_PAUSE_S)
    if not tail.last:
        tail.head = await _behind_mark(lanes.link, lanes.stream)
    return tail


async def write_mark(link: Link, stream: str, offset: int, sequence: int) -> None:
    """Remembers that all batches below a sequence end at or below an offset."""
    config = (await link.api(f"STREAM.INFO.{stream}"))["config"]
    config["metadata"] = (config.get("metadata") or {}) | {MARK: f"{offset} {sequence}"}
    await link.api(f"STREAM.UPDATE.{stream}", config)


async def hold_age(link: Link, stream: str, held: bool, max_age_s: float) -> None:
    """Whether the store leaves the age limit to the node. Changes the stream only where that changes."""
    config = (await link.api(f"STREAM.INFO.{stream}"))["config"]
    metadata = config.get("metadata") or {}
    if (HELD in metadata) == held:
        return
    if held:
        config["metadata"], config["max_age"] = metadata | {HELD: "1"}, 0
    else:
        config["metadata"] = {key: value for key, value in metadata.items() if key != HELD}
        config["max_age"] = round(max_age_s * NANOSECONDS)
    await link.api(f"STREAM.UPDATE.{stream}", config)


async def write_first_mark(link: Link, stream: str, offset: int, sequence: int) -> None:
    """The same, if there is none. An old one is right, too, and each change of a stream is a moment in which a store
    that is killed comes to harm."""
    config = (await link.api(f"STREAM.INFO.{stream}"))["config"]
    if MARK not in (config.get("metadata") or {}):
        await write_mark(link, stream, offset, sequence)


async def _behind_mark(link: Link, stream: str) -> int:
    """Behind all offsets that can have been given, in a stream without batches; 0 in a new journal."""
    answer = await link.api(f"STREAM.INFO.{stream}")
    mark = (answer["config"].get("metadata") or {}).get(MARK, "")
    if not mark:
        return 0
    offset, sequence = (int(number) for number in mark.split())
    gone = state_of(answer).first_sequence - sequence  # records that may have been batches; those still there are none
    return offset + max(gone, 0) * MESSAGES_PER_RECORD_MAX
