"""Expressions with types: from nodes to Spark SQL.

A value of a JSON payload has no type of its own; it takes the one that its place needs. `payload.temp > 30` needs a
number, `upper(payload.name)` a text, `WHERE payload.ok` a boolean. What does not fit is NULL, never an error: one
message with a wrong field must not stop a stream. A value whose type is known (a column, a declared field) is not
bent: the rule has to say CAST.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from brookmq.spark.rules import nodes
from brookmq.spark.rules.calling import call_value
from brookmq.spark.rules.emitting import Value, converted
from brookmq.spark.rules.errors import Refusal
from brookmq.spark.rules.functions import FUNCTIONS
from brookmq.spark.rules.operating import COMPILERS, cast_hint, shown_kind, time_literal
from brookmq.spark.rules.scope import Scope
from brookmq.spark.rules.types import (
    BYTES,
    INTEGER,
    JSON,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Kind,
    Type,
)

_TIMES: Final = (Kind.TIMESTAMP, Kind.DATE)


class Valuing:
    """Compiles the expressions of one rule; remembers the probes that its constants need."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.aliases: Mapping[str, nodes.Node] = {}
        """Names that stand for columns of the SELECT; set while GROUP BY and HAVING are compiled."""
        self.keys: Mapping[nodes.Node, Value] | None = None
        """The values of GROUP BY, once they are known; outside of aggregates nothing else may be used then."""
        self.aggregates_allowed = False
        self.probes: list[tuple[int, str]] = []
        """Spark SQL over constants of the rule, with the place of what is wrong if it fails."""
        self._inside_aggregate = False

    def value(self, node: nodes.Node, wanted: Type | None = None) -> Value:
        """The node's value; as the wanted type, if one is given."""
        natural = self._natural(node)
        if wanted is None:
            return natural
        if wanted.kind is Kind.NUMBER and natural.type.kind is Kind.INTEGER:
            wanted = INTEGER  # an integer is a number already, and stays exact
        if isinstance(node, nodes.Text) and wanted.kind in _TIMES:
            return time_literal(node, natural, wanted)
        found = converted(natural, wanted)
        if found is None:
            have, need = shown_kind(natural.type.kind), shown_kind(wanted.kind)
            raise Refusal(f"{need} is needed here, this is {have}", node.at, cast_hint(wanted))
        return found

    def is_key(self, node: nodes.Node) -> bool:
        """Whether GROUP BY has this very expression, and it is used outside of aggregates."""
        return self.keys is not None and not self._inside_aggregate and node in self.keys

    def _natural(self, node: nodes.Node) -> Value:
        if self.keys is not None and not self._inside_aggregate:
            if node in self.keys:
                return self.keys[node]
            if isinstance(node, nodes.Name | nodes.Access) and not self._reaches_key(node):
                hint = "put it into GROUP BY, or into a function such as max(…) or last_value(…)"
                raise Refusal("this has no single value for a group", node.at, hint)
        return COMPILERS[type(node)](self, node)

    def _reaches_key(self, node: nodes.Node) -> bool:
        """Whether a path leads into something that GROUP BY has (``window.start``), or is an alias in HAVING."""
        assert self.keys is not None
        while isinstance(node, nodes.Access):
            node = node.base
            if node in self.keys:
                return True
        if not isinstance(node, nodes.Name):
            return True  # the path begins with a call, which is looked at in its turn
        return node.name.lower() == "window" or (node.name in self.aliases and self.scope.find(node.name) is None)

    def common(self, parts: Sequence[nodes.Node], json_as: Type | None) -> tuple[list[Value], Type]:
        """The values as one type. ``json_as`` is that of JSON values which stand alone; None: they stay JSON."""
        naturals = [self.value(part) for part in parts]
        type = self._common_type(parts, naturals, json_as)
        values = []
        for part, natural in zip(parts, naturals, strict=True):
            if isinstance(part, nodes.Text) and type.kind in _TIMES:
                values.append(time_literal(part, natural, type))
            else:
                found = converted(natural, type)
                values.append(natural if found is None else found)
        return values, type

    def _common_type(self, parts: Sequence[nodes.Node], naturals: list[Value], json_as: Type | None) -> Type:
        type: Type | None = None
        has_time = any(natural.type.kind in _TIMES for natural in naturals)
        has_json = any(natural.type.kind is Kind.JSON for natural in naturals)
        for part, natural in zip(parts, naturals, strict=True):
            if natural.type.kind in (Kind.JSON, Kind.NULL) or (has_time and isinstance(part, nodes.Text)):
                continue
            joined = natural.type if type is None else _joined(type, natural.type)
            if joined is None:
                assert type is not None
                message = f"{shown_kind(type.kind)} and {shown_kind(natural.type.kind)} do not go together"
                raise Refusal(message, part.at, "CAST one of them")
            type = joined
        if type is None:
            return (json_as or JSON) if has_json else TEXT
        if type.kind is Kind.INTEGER:
            return NUMBER if has_json else INTEGER  # 30.5 in a payload is not 30
        return type

    def call(self, node: nodes.Call) -> Value:
        function = FUNCTIONS[node.name]
        if not function.aggregate:
            return call_value(self, node)
        if self._inside_aggregate:
            raise Refusal(f"{node.name} stands inside of another aggregate function", node.at)
        if not self.aggregates_allowed:
            raise Refusal(f"{node.name} cannot stand here", node.at, "aggregate functions are for SELECT and HAVING")
        self._inside_aggregate = True
        try:
            return call_value(self, node)
        finally:
            self._inside_aggregate = False


def _joined(one: Type, other: Type) -> Type | None:
    kinds = {one.kind, other.kind}
    if kinds == {Kind.INTEGER, Kind.NUMBER}:
        return NUMBER
    if kinds == {Kind.TIMESTAMP, Kind.DATE}:
        return TIMESTAMP
    if kinds == {Kind.TEXT, Kind.BYTES}:
        return BYTES
    if len(kinds) > 1:
        return None
    if one.kind in (Kind.LIST, Kind.RECORD, Kind.MAP) and one != other:
        return None
    return one
