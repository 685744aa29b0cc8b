"""Which shard of the journal a topic belongs to."""

from __future__ import annotations

from zlib import crc32

from brookmq.base.events import PREFIX_BYTES


def shard_hash(topic: bytes) -> int:
    """Modulo the number of shards, the shard of a topic: for ever, as readers rely on the order within a topic.

    Events are all in the first shard. Who comes and who goes are different topics, and only offsets of the same shard
    tell what was first.
    """
    return 0 if topic.startswith(PREFIX_BYTES) else crc32(topic)
