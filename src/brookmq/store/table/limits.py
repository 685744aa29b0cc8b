"""The bounds and times of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from brookmq.base import faults
from brookmq.base.errors import CallerError

KIB: Final = 1024
MIB: Final = 1024 * KIB


@dataclass(frozen=True, slots=True)
class TableLimits:
    """Bounds and times; the defaults are what was measured best."""

    linger_s: float = 0.002  # between the beginnings of two appends
    record_bytes: int = 64 * KIB  # as much as this does not linger
    record_bytes_max: int = 256 * KIB  # a record holds no more, unless one change is larger
    piece_bytes_max: int = 4 * MIB  # a change that is larger is cut into pieces, a record each
    waiting_bytes_max: int = 4 * MIB  # with more, whoever causes changes waits

    # The tail is what a start reads: it decides how long that takes, and the larger it is, the less often each part
    # is written again. Snapshots begin at the first two and whoever causes changes waits at the third.
    tail_bytes: int = 12 * MIB
    tail_records: int = faults.bound("table.tail_records", 128 * KIB)
    tail_bytes_max: int = 16 * MIB
    purge_share: float = 1 / 16  # of a tail that snapshots have made free, before the store is asked to purge it

    range_records: int = 512  # between two markers in the log
    digest_bytes_max: int = MIB  # records that are larger together are not repeated in the marker behind them

    chunk_bytes_max: int = MIB  # of a snapshot in one message
    slice_s: float = 0.002  # of encoding and of loading, before others have their turn

    def __post_init__(self) -> None:
        # The last record always stays in the log; if it alone made the tail too long, all would wait for ever.
        if max(self.record_bytes_max, self.piece_bytes_max) + KIB > self.tail_bytes_max:
            raise CallerError(f"a tail of {self.tail_bytes_max} bytes is no bound: one record may be as large")
        if not self.tail_bytes <= self.tail_bytes_max:
            raise CallerError("snapshots must begin before changes have to wait for them")
