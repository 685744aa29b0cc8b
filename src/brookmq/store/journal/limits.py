"""The bounds and times of a shard."""

from __future__ import annotations


class ShardLimits:
    """Bounds and times; the defaults are what was measured best."""

    __slots__ = (
        "batch_bytes", "batch_bytes_max", "group_bytes_max", "linger_s", "pending_bytes_max", "recent_bytes_max"
    )  # fmt: skip

    def __init__(
        self,
        linger_s: float = 0.004,
        batch_bytes: int = 128 * 1024,
        batch_bytes_max: int = 256 * 1024,
        group_bytes_max: int = 7 * 1024 * 1024,
        pending_bytes_max: int = 4 * 1024 * 1024,
        recent_bytes_max: int = 8 * 1024 * 1024,
    ) -> None:
        self.linger_s = linger_s  # between the beginnings of two appends
        self.batch_bytes = batch_bytes  # as much as this does not linger
        self.batch_bytes_max = batch_bytes_max  # no batch is larger, unless a single group is
        self.group_bytes_max = group_bytes_max  # a larger one is refused: the store could not take it
        self.pending_bytes_max = pending_bytes_max  # with more, publishers wait: see ``Shard.full``
        self.recent_bytes_max = recent_bytes_max  # batches in memory for readers that are nearly at the head
