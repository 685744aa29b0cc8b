"""The options of the source, checked: a wrong one is one sentence that names it.

Spark hands options over as text, and their names in whatever case. What they mean is said here once, in ``SOURCE``.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from brookmq.spark.positions import Position, parse_offsets
from brookmq.spark.schema import COLUMNS
from brookmq.spark.topic_filter import checked_filter

SERVERS_DEFAULT: Final = "http://127.0.0.1:18083"
FILTER_DEFAULT: Final = "#"
TIME_MAX: Final = 1e11  # unix seconds; it is far away
EARLIEST: Final = "earliest"
LATEST: Final = "latest"
READER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

SOURCE: Final[dict[str, str]] = {
    "servers": "HTTP addresses of nodes, separated by commas; the first one that answers is used",
    "token": "for nodes that want a login",
    "filter": "MQTT topic filters, separated by commas, or as a JSON array",
    "startingPosition": "earliest, latest, a time (2026-11-15T12:00:00Z or unix seconds) or offsets as JSON",
    "endingPosition": "latest, a time or offsets as JSON, where a batch read ends",
    "maxRowsPerBatch": "offsets that one batch of a stream takes at most",
    "minPartitions": "parts that are read at the same time at least, when there is enough to read",
    "columns": "names of columns, separated by commas; the others are not read",
    "failOnDataLoss": "false: what retention has removed is skipped and counted, and is no error",
    "readerName": "a name under which the node keeps how far this stream has come",
    "pushDown": "true: a batch read takes conditions on topic, partition, offset and time into the journal's index",
}

Moment = float  # unix seconds
Place = str | Moment | Position  # "earliest" or "latest", a time, or offsets


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What the user asked for; a position that is None is the default of a batch or of a stream."""

    servers: tuple[str, ...]
    token: str | None
    filters: tuple[str, ...]
    start: Place | None
    end: Place | None
    rows_max: int | None
    partitions_min: int | None
    columns: tuple[str, ...]
    fail_on_data_loss: bool
    reader_name: str | None
    push_down: bool


def source_options(given: Mapping[str, str]) -> SourceOptions:
    """The options of a read, from those that Spark hands over. Raises ``ValueError``."""
    options = {name.lower(): value for name, value in given.items()}
    refuse_unknown(options, SOURCE)
    return SourceOptions(
        servers=servers(options),
        token=options.get("token") or None,
        filters=filters(options.get("filter", FILTER_DEFAULT)),
        start=place("startingPosition", options, (EARLIEST, LATEST)),
        end=place("endingPosition", options, (LATEST,)),
        rows_max=number("maxRowsPerBatch", options),
        partitions_min=number("minPartitions", options),
        columns=columns(options.get("columns", "")),
        fail_on_data_loss=flag("failOnDataLoss", options, default=True),
        reader_name=reader_name(options),
        push_down=flag("pushDown", options, default=False),
    )


def refuse_unknown(options: Iterable[str], known: Iterable[str]) -> None:
    """``ValueError`` for an option that does not exist, with the one that may have been meant."""
    names = {name.lower(): name for name in known}
    for name in options:
        if name.lower() not in names:
            near = difflib.get_close_matches(name.lower(), names, n=1)
            hint = f"did you mean {names[near[0]]}?" if near else f"there are {', '.join(names.values())}"
            raise ValueError(f"brookmq: there is no option {name!r}; {hint}")


def servers(options: Mapping[str, str]) -> tuple[str, ...]:
    """The addresses in ``servers``, as URLs without a path."""
    found = []
    for text in options.get("servers", SERVERS_DEFAULT).split(","):
        address = text.strip() if "://" in text else f"http://{text.strip()}"
        try:
            parts = urlsplit(address)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid or parts.path not in ("", "/") or parts.query or parts.username:
            raise ValueError(f"brookmq: the option servers has {text.strip()!r}, expected {SERVERS_DEFAULT}")
        found.append(f"{parts.scheme}://{parts.netloc}")
    return tuple(found)


def filters(text: str) -> tuple[str, ...]:
    """Topic filters: a JSON array where one of them has a comma in it, else a list with commas."""
    given: object = text.split(",")
    if text.lstrip().startswith("["):
        try:
            given = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"brookmq: the option filter is no JSON array: {error}") from None
    if not isinstance(given, list) or not given or not all(isinstance(one, str) for one in given):
        raise ValueError('brookmq: the option filter takes filters such as a/#,b/+ or ["a/#", "b/+"]')
    return tuple(checked_filter(one.strip() if text.lstrip()[:1] != "[" else one) for one in given)


def place(name: str, options: Mapping[str, str], words: tuple[str, ...]) -> Place | None:
    """A word, a time, or offsets."""
    text = options.get(name.lower(), "").strip()
    if not text:
        return None
    if text.lower() in words:
        return text.lower()
    if text.startswith("{"):
        return parse_offsets(text, name)
    moment = _moment(text)
    if moment is None:
        raise ValueError(
            f"brookmq: the option {name} takes {', '.join(words)}, a time such as 2026-11-15T12:00:00Z, unix seconds, "
            f'or offsets such as {{"0": 17}}, not {text!r}'
        )
    return moment


def _moment(text: str) -> Moment | None:
    try:
        seconds = float(text)
    except ValueError:
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            return None
        if when.tzinfo is None:
            return None  # no guess at a time zone
        seconds = when.timestamp()
    return seconds if 0 <= seconds <= TIME_MAX else None


def number(name: str, options: Mapping[str, str]) -> int | None:
    """A number above 0."""
    text = options.get(name.lower(), "").strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"brookmq: the option {name} takes a number above 0, not {text!r}")
    return int(text)


def flag(name: str, options: Mapping[str, str], *, default: bool) -> bool:
    """True or false."""
    text = options.get(name.lower(), str(default)).strip().lower()
    if text not in ("true", "false"):
        raise ValueError(f"brookmq: the option {name} takes true or false, not {text!r}")
    return text == "true"


def columns(text: str) -> tuple[str, ...]:
    """Names of columns, each once; all when none is named."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in COLUMNS:
            raise ValueError(f"brookmq: the option columns has {name!r}; there are {', '.join(COLUMNS)}")
    if len(set(names)) != len(names):
        raise ValueError(f"brookmq: the option columns has a name twice: {text}")
    return names or tuple(COLUMNS)


def reader_name(options: Mapping[str, str]) -> str | None:
    name = options.get("readername", "")
    if name and not READER_NAME.fullmatch(name):
        raise ValueError(
            f"brookmq: the option readerName takes letters, digits, dots, dashes and underscores, not {name!r}"
        )
    return name or None
