"""Processes that write a batch with an action and die on the way, at a point with a name.

One process has loaded everything, which takes seconds, and makes another one of itself for each batch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from brookmq.base.rule_documents import parse_action
from brookmq.spark.actions import BatchKey, NodeAccess, make_action
from tests.spark.actions.local_frame import LocalFrame

QUERY = "8b0f4d3c-6c1e-4a53-9d5e-1b6ff1d3a111"
ROWS = 100
DEAD = 42
FIRST = datetime(2026, 1, 31, 23, 59, 50, tzinfo=UTC)
POINTS = ("written", "prepared", "halfway", "published", "committed")
SQL_POINTS = ("inserted", "committed")


def rows_of(batch: int) -> pa.Table:
    """The rows of a batch, of two days."""
    numbers = range(batch * ROWS, (batch + 1) * ROWS)
    moments = [FIRST + timedelta(seconds=number % ROWS / 5) for number in numbers]
    return pa.table(
        {
            "number": pa.array(numbers, pa.int64()),
            "topic": [f"sensors/{number}" for number in numbers],
            "published_at": pa.array(moments, pa.timestamp("us", tz="UTC")),
        }
    )


class Mortals:
    """``write`` happens in a process of its own each time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.actions.dying"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a process with threads can't well be made into two
        )

    def write(self, document: dict[str, Any], batch: int, point: str = "") -> int | None:
        """How many rows it wrote, None if it died at the point."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([document, batch, point]) + "\n")
        self._process.stdin.flush()
        code, count = json.loads(self._process.stdout.readline())
        assert code == (DEAD if point else 0)
        return None if point else int(count)

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(60) == 0


@contextmanager
def mortals() -> Iterator[Mortals]:
    made = Mortals()
    try:
        yield made
    finally:
        made.close()


def die(*_: object, **__: object) -> Any:
    os._exit(DEAD)


def _then_die(before: Callable[..., Any]) -> Callable[..., Any]:
    def called(*values: Any, **named: Any) -> Any:
        before(*values, **named)
        die()

    return called


def _arm(action: Any, point: str) -> None:
    from brookmq.spark.actions.staging import Staging

    if point == "written":
        Staging._prepare = die  # type: ignore[method-assign]
    elif point == "prepared":
        Staging._publish = die  # type: ignore[method-assign]
    elif point == "halfway":
        rename = Path.rename

        def renamed(file: Path, place: Path) -> Path:
            done = rename(file, place)
            return die() if place.suffix == ".parquet" else done

        Path.rename = renamed  # type: ignore[method-assign, assignment]
    elif point == "published":
        action.commit = die
    elif point == "committed":
        action.commit = _then_die(action.commit)
    else:
        assert not point, point


def _without_spark() -> None:
    """What Spark would do with the rows is done already, or by Arrow."""
    from brookmq.spark.actions import delta, iceberg, parquet_folder, postgresql

    def dated(frame: LocalFrame, name: str = "date") -> LocalFrame:
        table = frame.toArrow()
        days = [moment.date() for moment in table["published_at"].to_pylist()]
        return LocalFrame(table.append_column(name, pa.array(days, pa.date32())))

    modules: Sequence[Any] = (delta, iceberg, parquet_folder)
    for module in modules:
        module.storable = lambda frame: frame
        module.with_date = dated
    postgresql.carried_rows = lambda frame: frame  # type: ignore[assignment, return-value]


def _arm_sql(action: Any, point: str) -> None:
    insert, connect = action._insert, action._last_batch

    def armed(key: BatchKey) -> int:
        found: int = connect(key)
        connection = action._connection
        if point == "inserted":
            connection.commit = die
        return found

    action._last_batch = armed
    if point == "committed":
        action._insert = _then_die(insert)


def _write(document: dict[str, Any], batch: int, point: str) -> int:
    rows = rows_of(batch)
    action = make_action(parse_action(document), {}, NodeAccess(()), from_arrow_schema(rows.schema))
    if point and document["type"] == "postgresql":
        _arm_sql(action, point)
    else:
        _arm(action, point)
    frame: Any = LocalFrame(rows)
    count = action.write(frame, BatchKey(QUERY, batch))
    action.close()
    return count


def main() -> None:
    _without_spark()
    for line in sys.stdin:
        answer, told = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.write(told, str(_write(*json.loads(line))).encode())
                code = 0
            finally:
                if code:
                    traceback.print_exc()
                os._exit(code)
        os.close(told)
        count = os.read(answer, 100).decode()
        os.close(answer)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(json.dumps([os.waitstatus_to_exitcode(status), count]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
