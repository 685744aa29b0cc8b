"""A rule as Spark SQL.

Two queries, one over the other. The base view has the messages of the topic filters with their payload decoded once;
``explode(array(…))`` around the decoding keeps Spark from repeating it above and below a pushed filter. The rule's own
query stands on that view. Between the two a pipeline counts what matched and what could not be decoded.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from brookmq.spark.rules import nodes
from brookmq.spark.rules.calling import shown
from brookmq.spark.rules.columns import MESSAGE_COLUMNS
from brookmq.spark.rules.durations import milliseconds, written
from brookmq.spark.rules.emitting import Value, converted
from brookmq.spark.rules.errors import Refusal
from brookmq.spark.rules.events import EVENT_PREFIX, EVENTS, common_columns
from brookmq.spark.rules.functions import FUNCTIONS
from brookmq.spark.rules.operating import refuse_uncomparable
from brookmq.spark.rules.parsing import parse_rule
from brookmq.spark.rules.schemas import JSON_PAYLOAD, Schema
from brookmq.spark.rules.scope import ITEM, PAYLOAD, WINDOW, Scope
from brookmq.spark.rules.topics import topic_condition
from brookmq.spark.rules.types import BOOLEAN, JSON, TEXT, Kind, Type, list_of, quoted
from brookmq.spark.rules.valuing import Valuing

WATERMARK_DEFAULT: Final = "10 seconds"
"""How long a window waits for messages that come late: they have the broker's own time, so only shards differ."""


@dataclass(frozen=True, slots=True)
class OutputColumn:
    name: str
    type: str
    """As Spark writes it: ``double``, ``variant``, ``struct<start:timestamp,end:timestamp>``."""


@dataclass(frozen=True, slots=True)
class CompiledRule:
    text: str
    filters: tuple[str, ...]
    columns: tuple[OutputColumn, ...]
    schema: Schema | None
    source_columns: tuple[str, ...]
    """The columns of a message that the rule needs: an option of the source."""
    output_mode: str
    """``append``, or ``update`` where groups have no window that could ever be finished."""
    watermark: str | None
    """How long windows wait, on ``published_at``."""
    failed_sql: str
    """A condition over the base view: the payload could not be decoded."""
    decodes_in_python: bool
    probes: tuple[tuple[int, str], ...] = field(repr=False)
    _decoding: str = field(repr=False)
    _where: str = field(repr=False)
    _query: tuple[str, str] = field(repr=False)
    """What stands before and behind the name of the base view."""

    def base_sql(self, source: str) -> str:
        """The base view over a view of messages; where Python decodes, without the decoded payload."""
        decoding = f", {self._decoding} AS {PAYLOAD}" if self._decoding else ""
        return f"SELECT *{decoding} FROM {quoted(source)} WHERE {self._where}"  # noqa: S608 - built from nodes

    def query_sql(self, base: str) -> str:
        """The rule over its base view."""
        return quoted(base).join(self._query)


def compile_rule(
    text: str, schema: Schema | None = None, events: Mapping[str, Mapping[str, Type]] = EVENTS
) -> CompiledRule:
    """The rule in Spark SQL; raises RuleError with the place of what is wrong."""
    rule = parse_rule(text)
    try:
        return _Compiling(rule, schema, events).compiled()
    except Refusal as refusal:
        raise refusal.located_in(text) from None
    except RecursionError:
        raise Refusal("the rule is nested too deeply", 0).located_in(text) from None


class _Compiling:
    def __init__(self, rule: nodes.Rule, schema: Schema | None, events: Mapping[str, Mapping[str, Type]]) -> None:
        self._rule = rule
        self._schema = schema
        self._scope = Scope(JSON if schema is None else schema.type, self._event_columns(events))
        self._valuing = Valuing(self._scope)
        self._window: str | None = None

    def compiled(self) -> CompiledRule:
        rule = self._rule
        explode = self._explode()
        conditions = [rule.where, rule.foreach.condition if rule.foreach else None]
        where = " AND ".join(self._valuing.value(node, BOOLEAN).sql for node in conditions if node is not None)
        keys = self._keys()
        grouped = bool(keys) or self._has_aggregates()
        if grouped:
            self._valuing.keys = keys
            self._valuing.aggregates_allowed = True
        columns = self._columns()
        having = self._having(grouped=grouped)
        before = f"SELECT {', '.join(f'{value.sql} AS {quoted(name)}' for name, value in columns)} FROM "  # noqa: S608
        query = explode
        query += f" WHERE {where}" if where else ""
        query += f" GROUP BY {', '.join(value.sql for value in keys.values())}" if keys else ""
        query += having
        conditions_sql = " OR ".join(topic_condition(filter.filter) for filter in rule.filters)
        payload = JSON_PAYLOAD if self._schema is None else self._schema.payload
        decodes = PAYLOAD in before + query
        return CompiledRule(
            rule.text,
            tuple(filter.filter for filter in rule.filters),
            tuple(OutputColumn(name, value.type.spark.replace("`", "")) for name, value in columns),
            self._schema,
            _source_columns(before + query, decodes=decodes),
            "update" if grouped and self._window is None else "append",
            self._watermark(),
            payload.failed if decodes else "false",
            decodes and payload.in_python,
            tuple(self._valuing.probes),
            payload.decoding if decodes else "",
            f"({conditions_sql})",
            (before, query),
        )

    def _event_columns(self, events: Mapping[str, Mapping[str, Type]]) -> Mapping[str, Type] | None:
        """The columns of all events that the rule reads; None if it reads messages, too."""
        found: list[Mapping[str, Type]] = []
        for filter in self._rule.filters:
            name = filter.filter.removeprefix(EVENT_PREFIX)
            if name == filter.filter:
                return None
            if name not in events and not {"+", "#"} & set(name):
                near = difflib.get_close_matches(name, events, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(events)}"
                raise Refusal(f"there is no event {name}", filter.at, hint)
            found += [events[name]] if name in events else events.values()
        if self._schema is not None:
            raise Refusal("events have no schema of their own", self._rule.filters[0].at, "remove the rule's schema")
        return common_columns(found)

    def _explode(self) -> str:
        foreach = self._rule.foreach
        if foreach is None:
            return ""
        items = self._valuing.value(foreach.items)
        if items.type.kind not in (Kind.LIST, Kind.JSON):
            raise Refusal(f"FOREACH takes a list, this is {items.type.kind}", foreach.items.at)
        if items.type.kind is Kind.JSON:
            found = converted(items, list_of(JSON))
            assert found is not None
            items = found
        self._scope.add_item(foreach.name, items.type.element or JSON, foreach.items.at)
        return f" LATERAL VIEW explode({items.sql}) __items AS {ITEM}"

    def _keys(self) -> dict[nodes.Node, Value]:
        keys: dict[nodes.Node, Value] = {}
        self._valuing.aliases = {column.alias: column.expression for column in self._rule.columns if column.alias}
        for node in self._rule.group:
            if isinstance(node, nodes.Name) and self._scope.find(node.name) is None:
                node = self._valuing.aliases.get(node.name, node)
            if isinstance(node, nodes.Call) and node.name == "window":
                keys[node] = self._window_value(node)
            else:
                value = self._valuing.value(node)
                if value.type.kind is Kind.JSON:  # Spark does not group by VARIANT
                    value = converted(value, TEXT) or value
                refuse_uncomparable(value.type, node.at)
                keys[node] = value
        self._valuing.aliases = {}
        if self._window is not None:
            self._scope.add_window()
        return keys

    def _window_value(self, node: nodes.Call) -> Value:
        if self._window is not None:
            raise Refusal("a rule has one window", node.at)
        if not FUNCTIONS["window"].accepts(len(node.arguments)):
            raise Refusal("window takes other arguments", node.at, FUNCTIONS["window"].shown)
        time, *durations = node.arguments
        if time != nodes.Name(0, "published_at"):
            raise Refusal("windows are over published_at", time.at, "window(published_at, '1 minute')")
        lengths = []
        for duration in durations:
            if not isinstance(duration, nodes.Text):
                raise Refusal("a duration in single quotes is needed here", duration.at, "'1 minute'")
            lengths.append(milliseconds(duration))
            if not lengths[-1] or lengths[-1] > lengths[0]:
                raise Refusal("a window is longer than nothing, and its slide is no longer than it", duration.at)
        self._window = ", ".join(f"'{written(length)}'" for length in lengths)
        return Value(f"window(published_at, {self._window})", WINDOW)

    def _has_aggregates(self) -> bool:
        rule = self._rule
        found = [column.expression for column in rule.columns] + ([rule.having] if rule.having is not None else [])
        return any(
            isinstance(node, nodes.Call) and FUNCTIONS[node.name].aggregate for tree in found for node in tree.walk()
        )

    def _columns(self) -> list[tuple[str, Value]]:
        columns: list[tuple[str, Value]] = []
        taken: set[str] = set()
        for column in self._rule.columns:
            for name, node in self._expanded(column, len(columns) + 1):
                value = shown(self._valuing.value(node))
                if value.type.kind is Kind.INTERVAL:
                    raise Refusal("an interval cannot be a column", column.at)
                if name.lower() in taken:
                    raise Refusal(f"there are two columns {name}", column.at, "give one another name with AS")
                taken.add(name.lower())
                columns.append((name, value))
        return columns

    def _expanded(self, column: nodes.Column, number: int) -> list[tuple[str, nodes.Node]]:
        if isinstance(column.expression, nodes.Star):
            return [(name, nodes.Name(column.at, name)) for name in self._scope.all_columns]
        return [(column.alias or _derived_name(column.expression, number), column.expression)]

    def _having(self, *, grouped: bool) -> str:
        having = self._rule.having
        if having is None:
            return ""
        if not grouped:
            raise Refusal("HAVING is for groups", having.at, "use WHERE")
        self._valuing.aliases = {column.alias: column.expression for column in self._rule.columns if column.alias}
        return f" HAVING {self._valuing.value(having, BOOLEAN).sql}"

    def _watermark(self) -> str | None:
        given = self._rule.watermark
        if given is None:
            return None if self._window is None else WATERMARK_DEFAULT
        if self._window is None:
            raise Refusal("WATERMARK is for windows", given.at, "GROUP BY window(published_at, '1 minute')")
        return written(milliseconds(given))


def _derived_name(node: nodes.Node, number: int) -> str:
    if isinstance(node, nodes.Name):
        return node.written or node.name
    if isinstance(node, nodes.Access) and isinstance(node.key, str) and re.fullmatch(r"[^\W\d_]\w*", node.key):
        return node.key
    if isinstance(node, nodes.Call):
        return node.name
    return f"column_{number}"


def _source_columns(query: str, *, decodes: bool) -> tuple[str, ...]:
    """Those whose names are in the query: a name inside of a text costs a column more, and nothing else."""
    return tuple(
        name
        for name in MESSAGE_COLUMNS
        if name == "topic" or (name == "payload" and decodes) or re.search(rf"\b{name}\b", query)
    )
