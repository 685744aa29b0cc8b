"""The columns of events in rules, ``FROM "$events/client_online"``: from the one list of events, with types of rules.

An event is a message with a JSON object as its payload; a rule names the fields of it like columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from brookmq.base import events
from brookmq.spark.rules.types import INTEGER, NUMBER, TEXT, Type

EVENT_PREFIX: Final = events.PREFIX

_TYPES: Final[dict[events.ColumnType, Type]] = {"string": TEXT, "int": INTEGER, "bigint": INTEGER, "double": NUMBER}

EVENTS: Final[dict[str, dict[str, Type]]] = {
    name: {column: _TYPES[type] for column, type in events.columns_of(name).items()} for name in events.EVENTS
}


def common_columns(found: Iterable[Mapping[str, Type]]) -> dict[str, Type]:
    """The columns of several events; one that has different types in them is a text."""
    columns: dict[str, Type] = {}
    for event in found:
        for name, type in event.items():
            columns[name] = type if columns.get(name, type) == type else TEXT
    return columns
