"""A driver that is made to be killed: a stream of files into three tables, with an answer behind each step.

``python -m tests.spark.actions.killed_driver FOLDER``: reads FOLDER/source a file at a time, prints a line when it has
begun and behind each write, and ends when everything is written.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from brookmq.base.rule_documents import parse_action
from brookmq.spark import session
from brookmq.spark.actions import Action, BatchKey, NodeAccess, make_action

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS = 200  # of a file


def documents(folder: Path) -> list[dict[str, Any]]:
    return [
        {"type": "delta", "path": str(folder / "delta")},
        {"type": "parquet", "path": str(folder / "parquet")},
        {"type": "iceberg", "warehouse": str(folder / "iceberg"), "table": "lake.readings"},
    ]


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(folder: Path) -> None:
    spark = session("local[2,4]", spark__sql__shuffle__partitions=2, spark__local__dir=folder / "spark")
    source = folder / "source"
    schema = spark.read.parquet(str(source)).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source)).repartition(2, "number")
    actions: list[Action] = [
        make_action(parse_action(document), {}, NodeAccess(()), schema) for document in documents(folder)
    ]

    def write(frame: DataFrame, batch: int) -> None:
        query = json.loads((folder / "checkpoint" / "metadata").read_text())["id"]
        for action in actions:
            say(f"{batch} {action.write(frame, BatchKey(query, batch))}")

    stream = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint"))
    query = stream.trigger(availableNow=True).start()
    say("begun")
    query.awaitTermination()
    say("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
