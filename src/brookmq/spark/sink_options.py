"""The options of the sink, checked: a wrong one is one sentence that names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from brookmq.mqtt.errors import PacketError
from brookmq.mqtt.topics import check_name
from brookmq.spark.options import flag, refuse_unknown, servers

QUERY_BYTES_MAX: Final = 1024
NUMBER_MAX: Final = (1 << 62) - 1
QOS: Final = ("0", "1", "2")
FAIL: Final = "fail"
SKIP: Final = "skip"

SINK: Final[dict[str, str]] = {
    "servers": "HTTP addresses of nodes, separated by commas; the first one that answers is used",
    "token": "for nodes that want a login",
    "topic": "where all rows go; without it each row has a column topic",
    "qos": "0, 1 or 2, for all rows; without it the column qos, or 0",
    "retain": "true or false, for all rows; without it the column retain, or false",
    "query": "the name under which the node keeps what was published; a stream has one of its own",
    "batch": "the number of a batch, with query: one that was published is not published again; not for streams",
    "onBadRow": "fail, or skip: rows that can't be published are left out, counted and logged",
    "sortRows": "true: the rows of each partition are sorted before they are sent",
}

# What Spark puts among the options of a stream: they are for itself.
OF_SPARK: Final = frozenset(("checkpointlocation", "queryname"))


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """What the user asked for; None where it is left to the columns, or to Spark."""

    servers: tuple[str, ...]
    token: str | None
    topic: str | None
    qos: int | None
    retain: bool | None
    query: str | None
    batch: int | None
    skip_bad_rows: bool
    sort_rows: bool


def sink_options(given: Mapping[str, str], *, stream: bool) -> SinkOptions:
    """The options of a write, from those that Spark hands over. Raises ``ValueError``."""
    options = {name.lower(): value for name, value in given.items() if not (stream and name.lower() in OF_SPARK)}
    refuse_unknown(options, SINK)
    query = _query(options)
    batch = _batch(options)
    if stream and batch is not None:
        raise ValueError("brookmq: the option batch is for batch writes; a stream has numbers of its own")
    if not stream and (query is None) != (batch is None):
        # A name alone would drop all that is written under it from the second time on.
        raise ValueError("brookmq: the options query and batch go together: they name what is published only once")
    return SinkOptions(
        servers=servers(options),
        token=options.get("token") or None,
        topic=_topic(options),
        qos=_qos(options),
        retain=flag("retain", options, default=False) if "retain" in options else None,
        query=query,
        batch=batch,
        skip_bad_rows=_skips(options),
        sort_rows=flag("sortRows", options, default=False),
    )


def _topic(options: Mapping[str, str]) -> str | None:
    if "topic" not in options:
        return None
    topic = options["topic"]
    try:
        check_name(topic.encode())
    except (PacketError, UnicodeEncodeError) as error:
        raise ValueError(f"brookmq: the option topic has {topic!r}, which can't be published to: {error}") from None
    return topic


def _qos(options: Mapping[str, str]) -> int | None:
    if "qos" not in options:
        return None
    if options["qos"].strip() not in QOS:
        raise ValueError(f"brookmq: the option qos takes 0, 1 or 2, not {options['qos']!r}")
    return int(options["qos"])


def _query(options: Mapping[str, str]) -> str | None:
    if "query" not in options:
        return None
    query = options["query"]
    if not query.isprintable() or not 0 < len(query.encode()) <= QUERY_BYTES_MAX:
        raise ValueError(f"brookmq: the option query takes a name of at most {QUERY_BYTES_MAX} bytes, not {query!r}")
    return query


def _batch(options: Mapping[str, str]) -> int | None:
    if "batch" not in options:
        return None
    text = options["batch"].strip()
    if not (text.isascii() and text.isdecimal()) or int(text) > NUMBER_MAX:
        raise ValueError(f"brookmq: the option batch takes a number from 0 on, not {text!r}")
    return int(text)


def _skips(options: Mapping[str, str]) -> bool:
    chosen = options.get("onbadrow", FAIL).strip().lower()
    if chosen not in (FAIL, SKIP):
        raise ValueError(f"brookmq: the option onBadRow takes {FAIL} or {SKIP}, not {chosen!r}")
    return chosen == SKIP
