"""The generated parts of the guide to Spark: the tables of options and columns.

``python -m brookmq.spark.guide FILE…`` writes them into the files, between their markers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from brookmq.spark.options import FILTER_DEFAULT, SERVERS_DEFAULT, SOURCE
from brookmq.spark.rules.guide import fill
from brookmq.spark.schema import COLUMNS

BOTH: Final = "both"
BATCH: Final = "batch"
STREAM: Final = "stream"


class Use(NamedTuple):
    """Which reads an option is for, and what holds without it."""

    reads: str
    default: str


SOURCE_USES: Final[dict[str, Use]] = {
    "servers": Use(BOTH, f"`{SERVERS_DEFAULT}`"),
    "token": Use(BOTH, "no login"),
    "filter": Use(BOTH, f"`{FILTER_DEFAULT}`: all but topics with `$`"),
    "startingPosition": Use(BOTH, "batch `earliest`, stream `latest`"),
    "endingPosition": Use(BATCH, "`latest`"),
    "maxRowsPerBatch": Use(STREAM, "all there is"),
    "minPartitions": Use(BOTH, "one for each partition of the journal; more for long ranges"),
    "columns": Use(BOTH, "all"),
    "failOnDataLoss": Use(BOTH, "`true`"),
    "readerName": Use(STREAM, "no name"),
    "pushDown": Use(BATCH, "`false`"),
}

COLUMN_MEANINGS: Final[dict[str, str]] = {
    "topic": "as it was published",
    "payload": "the bytes; `CAST(payload AS STRING)` for text",
    "qos": "0, 1 or 2, of the publisher",
    "retain": "whether the publisher set RETAIN",
    "client_id": "of the publisher",
    "username": "of the publisher; NULL without one",
    "user_properties": "in their order, names may repeat; NULL without any (MQTT 5)",
    "content_type": "MQTT 5",
    "response_topic": "MQTT 5",
    "correlation_data": "MQTT 5",
    "payload_format": "1: the publisher says that the payload is UTF-8 (MQTT 5)",
    "expires_at": "when the message expires; NULL for never (MQTT 5)",
    "published_at": "when the node took it, by the node's clock",
    "partition": "of the journal, from 0",
    "offset": "in its partition, from 0; with the partition it names one message for ever",
    "node": "the node that has the journal",
}


def options_table() -> str:
    """Every option of the source."""
    rows = ["| option | for | default | |", "|---|---|---|---|"]
    rows += [
        f"| `{name}` | {SOURCE_USES[name].reads} | {SOURCE_USES[name].default} | {doc} |"
        for name, doc in SOURCE.items()
    ]
    return "\n".join(rows)


def columns_table() -> str:
    """Every column of a message, with its type in Spark."""
    rows = ["| column | type | |", "|---|---|---|"]
    rows += [f"| `{name}` | `{type}` | {COLUMN_MEANINGS[name]} |" for name, type in COLUMNS.items()]
    return "\n".join(rows)


PARTS: Final[dict[str, Callable[[], str]]] = {"options": options_table, "columns": columns_table}


def main() -> None:
    for name in sys.argv[1:]:
        file = Path(name)
        file.write_text(fill(file.read_text(), PARTS))


if __name__ == "__main__":
    main()
