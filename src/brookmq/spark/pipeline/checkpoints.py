"""Where queries keep how far they are: Spark's checkpoints, one behind the other as a query changes its meaning.

    DATA_DIR/queries/rule.NAME/1/checkpoint         Spark's
                              /1/generation.json    what it belongs to, and where it began
                              /2/…                  the next one, when the rule was changed

Spark refuses a checkpoint of another query, or worse, takes it. So each has the hash of what it belongs to beside it,
and a query with another one gets a new checkpoint. It begins where the last batch ended that the old one finished, to
the row. Where it begins is written down before anything runs: a start that comes to nothing does not lose it.

A journal that is new (its data folder was lost) has other messages under the same offsets: that is another generation,
too.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from brookmq.base.errors import OperationError
from brookmq.spark.pipeline.documents import PipelineNode
from brookmq.spark.pipeline.wanted import WantedQuery
from brookmq.spark.positions import Position

KEPT: Final = 2  # generations of a query: the one that runs, and the one before for a look at it
DESCRIPTION: Final = "generation.json"
CHECKPOINT: Final = "checkpoint"


@dataclass(frozen=True, slots=True)
class Generation:
    """A checkpoint and what it belongs to."""

    folder: Path
    meaning: str
    lineage: str
    journal: str
    start: Position

    @property
    def checkpoint(self) -> Path:
        return self.folder / CHECKPOINT

    @property
    def query_id(self) -> str:
        """Spark's id of the query: the same as long as the checkpoint lives."""
        return str(_parsed(self.checkpoint / "metadata")["id"])

    def reached(self) -> Position:
        """The position behind the last batch that was finished."""
        batch = max(_numbers(self.checkpoint / "commits"), default=None)
        if batch is None:
            return self.start
        path = self.checkpoint / "offsets" / str(batch)
        lines = path.read_text().splitlines()  # a version, settings, then a line for each source
        try:
            offsets = json.loads(lines[-1])["offsets"]
            return {int(shard): int(offset) for shard, offset in offsets.items()}
        except (AttributeError, LookupError, TypeError, ValueError):
            raise OperationError(f"{path} is not as Spark writes it: move the folder {self.folder} away") from None


class Checkpoints:
    """The folder of all queries."""

    def __init__(self, data_dir: Path) -> None:
        self._root = data_dir / "queries"

    def prepare(self, query: WantedQuery, journal: str, node: PipelineNode) -> Generation:
        """The generation for this query: the last one if it fits, else a new one."""
        last = self.last(query)
        if last is not None and (last.meaning, last.lineage, last.journal) == (query.meaning, query.lineage, journal):
            return last
        goes_on = last is not None and (last.lineage, last.journal) == (query.lineage, journal)
        start = last.reached() if last is not None and goes_on else begin(query, node, known_here=last is not None)
        return self._add(query, journal, start)

    def last(self, query: WantedQuery) -> Generation | None:
        folder = self._root / query.reader
        number = max(_numbers(folder), default=None)
        if number is None:
            return None
        path = folder / str(number)
        described = _parsed(path / DESCRIPTION)
        start = {int(shard): int(offset) for shard, offset in described.pop("start").items()}
        return Generation(path, **described, start=start)

    def _add(self, query: WantedQuery, journal: str, start: Position) -> Generation:
        """Under its name it is whole: it is made under another one."""
        folder = self._root / query.reader
        folder.mkdir(parents=True, exist_ok=True)
        numbers = _numbers(folder)
        made = Generation(folder / str(max(numbers, default=0) + 1), query.meaning, query.lineage, journal, start)
        described = {name: value for name, value in asdict(made).items() if name != "folder"}
        with tempfile.TemporaryDirectory(dir=folder, prefix="new-") as temporary:
            new = Path(temporary) / "generation"
            new.mkdir()
            _write(new / DESCRIPTION, described)
            new.rename(made.folder)
        for number in sorted(numbers)[: 1 - KEPT]:
            shutil.rmtree(folder / str(number), ignore_errors=True)
        return made


def begin(query: WantedQuery, node: PipelineNode, *, known_here: bool) -> Position:
    """Where a query begins that has no checkpoint to go on from.

    The node may know better than we do how far it was: the folder of the checkpoints is gone, or the query ran on
    another machine. What the node knows of an earlier rule of the same name, or from before this folder knew that the
    query is another one now, does not count.
    """
    reader = None if known_here else node.reader(query.reader)
    begins = query.begins
    if reader is not None and reader.position and (isinstance(begins, str) or reader.seen_at >= begins):
        return {**node.journal().firsts, **reader.position}
    return node.journal().firsts if isinstance(begins, str) else node.at_time(begins)


def _numbers(folder: Path) -> list[int]:
    try:
        return [int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal()]
    except FileNotFoundError:
        return []


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, TypeError, ValueError) as error:
        raise OperationError(f"{path} can't be read ({error}): move the folder {path.parent} away") from None


def _write(path: Path, value: Mapping[str, Any]) -> None:
    with path.open("w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
