"""What the names in a rule mean: columns of the message, of an event, the payload, the item of FOREACH, the window."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from brookmq.spark.rules.columns import MESSAGE_COLUMNS, OTHER_NAMES
from brookmq.spark.rules.emitting import Value, bounded, text_literal, variant_get
from brookmq.spark.rules.errors import Refusal
from brookmq.spark.rules.nodes import Name
from brookmq.spark.rules.types import JSON, TEXT, TIMESTAMP, Kind, Type, quoted, record_of

PAYLOAD = "__payload"
"""The decoded payload in the base view. Names with two underscores cannot be given by rules or schemas."""
ITEM = "__item"
RAW_PAYLOAD = "payload"

WINDOW = record_of((("start", TIMESTAMP), ("end", TIMESTAMP)))


class Scope:
    def __init__(self, payload: Type, events: Mapping[str, Type] | None) -> None:
        text = payload.kind is Kind.TEXT
        shown = f"try_validate_utf8(CAST({RAW_PAYLOAD} AS STRING))" if text else PAYLOAD
        self._values: dict[str, Value] = {
            name: Value(quoted(name) if name in ("partition", "offset") else name, type)
            for name, type in MESSAGE_COLUMNS.items()
        }
        self._values["payload"] = Value(shown, payload, raw=RAW_PAYLOAD)
        if events is None:
            self._all = tuple(MESSAGE_COLUMNS)
        else:
            for name, type in events.items():
                self._values[name] = bounded(Value(variant_get(PAYLOAD, f"$.{name}", type.spark), type))
            self._all = tuple(events)

    def add_item(self, name: str, type: Type, at: int) -> None:
        if self.find(name) is not None:
            raise Refusal(f"{name} is a column already", at, "give the item of FOREACH another name")
        self._values[name] = bounded(Value(ITEM, type))

    def add_window(self) -> None:
        self._values["window"] = Value("window", WINDOW)

    def find(self, name: str) -> Value | None:
        lower = name.lower()
        return self._values.get(name) or self._values.get(OTHER_NAMES.get(lower, lower))

    def value(self, name: Name) -> Value:
        value = self.find(name.name)
        if value is None:
            near = difflib.get_close_matches(name.name.lower(), [*self._values, *OTHER_NAMES], 1)
            hint = f"did you mean {near[0]}?" if near else f"a field of the payload: payload.{name.name}"
            raise Refusal(f"there is no column {name.name}", name.at, hint)
        return value

    @property
    def all_columns(self) -> tuple[str, ...]:
        """What ``*`` stands for."""
        return self._all


def key_of(value: Value, key: str | int, at: int) -> Value:
    """The field or item of a value."""
    type = value.type
    if type.kind is Kind.JSON:
        if isinstance(key, str) and (not key or '"' in key or "\\" in key):
            raise Refusal("a field with this name cannot be reached", at, "names have no quotes and no backslashes")
        return value.step(key)
    if type.kind is Kind.RECORD and isinstance(key, str):
        field = type.field(key)
        if field is None:
            names = ", ".join(name for name, _ in type.fields if not name.startswith("__"))
            raise Refusal(f"there is no field {key}", at, f"there are {names}")
        return bounded(Value(f"{value.sql}.{quoted(key)}", field))
    if type.kind is Kind.MAP and isinstance(key, str):
        return bounded(Value(f"try_element_at({value.sql}, {text_literal(key)})", type.element or TEXT))
    if type.kind is Kind.LIST and isinstance(key, int):
        return bounded(Value(f"get({value.sql}, {key})", type.element or JSON))
    what = "items by number" if isinstance(key, int) else "fields"
    raise Refusal(f"this is {type.kind} and has no {what}", at)
