"""What a rule does with its rows, as the pipeline sees it: ``write`` a batch, once.

A batch comes again after a crash, with the same rows under the same key. An action therefore keeps the key of the last
batch that it wrote together with the rows, in one step, at the place where the rows go, and asks there before it
writes. Where no such step is possible (a terminal, somebody's HTTP server) its module says what holds instead.

Two kinds of errors come out of ``write``. ``ActionError`` is the place's fault: it can't be reached, it refuses the
rows. Everything else that Spark raises is about the rows before they came here (the journal can't be read, say), and no
fallback helps against that.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from brookmq.base.errors import OperationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COLOUR: Final = re.compile("\x1b\\[[0-9;]*m")
TAG_CHARACTERS: Final = 12  # 48 bits: the queries that ever write to one place don't collide


class ActionError(OperationError):
    """An action did not take a batch: one sentence, with what and where."""


@dataclass(frozen=True, slots=True)
class BatchKey:
    """A batch of a query. ``query`` stays the same as long as its checkpoint lives: a lost checkpoint is another query,
    which begins with batch 0 again."""

    query: str
    batch: int

    @property
    def tag(self) -> str:
        """The query in the names of files, whatever characters it has."""
        return hashlib.sha256(self.query.encode()).hexdigest()[:TAG_CHARACTERS]


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """The nodes whose rules run, for an action that speaks to them."""

    servers: tuple[str, ...]
    token: str | None = field(default=None, repr=False)


class Action(Protocol):
    """One action of one rule. Not for several threads at once."""

    def write(self, frame: DataFrame, key: BatchKey) -> int:
        """The number of rows that were written: none when the batch was written before. Reads the frame once, to its
        end."""

    def close(self) -> None:
        """Lets go of connections. Another thread may be in ``write``, which ends soon if it only waits."""


def one_line(error: Exception) -> str:
    """What a library says, which may be many lines and coloured, in one."""
    lines = (line.strip(" \t:↳") for line in _COLOUR.sub("", str(error)).splitlines())
    return ": ".join(line for line in lines if line) or type(error).__name__
