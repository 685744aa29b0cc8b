"""Expressions with types: from nodes to Spark SQL.

A value of a JSON payload has no type of its own; it takes the one that its place needs. `payload.temp > 30` needs a
number, `upper(payload.name)` a text, `WHERE payload.ok` a boolean. What does not fit is NULL, never an error: one
message with a wrong field must not stop a stream. A value whose type is known (a column, a declared field) is not
bent: the rule has to say CAST.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from brookmq.spark.rules import nodes
from brookmq.spark.rules.calling import call_value
from brookmq.spark.rules.emitting import Value, converted, number_literal, text_literal
from brookmq.spark.rules.errors import Refusal
from brookmq.spark.rules.functions import FUNCTIONS
from brookmq.spark.rules.scope import Scope, key_of
from brookmq.spark.rules.types import (
    BOOLEAN,
    BYTES,
    INTEGER,
    INTERVAL,
    JSON,
    NULL,
    NUMBER,
    SCALARS,
    TEXT,
    TIMESTAMP,
    Kind,
    Type,
)

_ARITHMETIC: Final = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
_EQUALITY: Final = ("=", "<>")
_NOT_COMPARED: Final = (Kind.LIST, Kind.RECORD, Kind.MAP, Kind.INTERVAL)
_TIMES: Final = (Kind.TIMESTAMP, Kind.DATE)
_ARTICLES: Final = {Kind.TEXT: "text", Kind.BYTES: "bytes", Kind.JSON: "json", Kind.INTEGER: "an integer"}


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
            return _time_literal(node, natural, wanted)
        found = converted(natural, wanted)
        if found is None:
            have, need = _shown(natural.type.kind), _shown(wanted.kind)
            raise Refusal(f"{need} is needed here, this is {have}", node.at, _cast_hint(wanted))
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
        return _COMPILERS[type(node)](self, node)

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
                values.append(_time_literal(part, natural, type))
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
                message = f"{_shown(type.kind)} and {_shown(natural.type.kind)} do not go together"
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


def _shown(kind: Kind) -> str:
    return _ARTICLES.get(kind, f"a {kind}")


def _cast_hint(wanted: Type) -> str:
    return f"CAST(… AS {wanted.spark.upper()})" if wanted.kind in (k.kind for k in SCALARS.values()) else ""


def _time_literal(node: nodes.Text, natural: Value, wanted: Type) -> Value:
    try:
        datetime.fromisoformat(node.value.strip())
    except ValueError:
        raise Refusal(f"{node.value!r} is not a {wanted.kind}", node.at, "'2026-01-31 12:00:00'") from None
    found = converted(natural, wanted, asked=True)
    assert found is not None
    return found


def _text(_: Valuing, node: nodes.Text) -> Value:
    return Value(text_literal(node.value), TEXT)


def _number(_: Valuing, node: nodes.Number) -> Value:
    sql = number_literal(node.digits)
    return Value(sql, INTEGER if sql.endswith("L") else NUMBER)


def _name(valuing: Valuing, node: nodes.Name) -> Value:
    alias = valuing.aliases.get(node.name)
    if alias is not None and valuing.scope.find(node.name) is None:
        return valuing.value(alias)
    return valuing.scope.value(node)


def _access(valuing: Valuing, node: nodes.Access) -> Value:
    keys = []
    base: nodes.Node = node
    while isinstance(base, nodes.Access) and not valuing.is_key(base):
        keys.append((base.key, base.at))
        base = base.base
    value = valuing.value(base)
    for key, at in reversed(keys):
        value = key_of(value, key, at)
    return value


def _unary(valuing: Valuing, node: nodes.Unary) -> Value:
    if node.operator == "NOT":
        return Value(f"(NOT {valuing.value(node.operand, BOOLEAN).sql})", BOOLEAN)
    if isinstance(node.operand, nodes.Number):
        literal = valuing.value(node.operand)
        return Value(f"-{literal.sql}", literal.type)
    operand = valuing.value(node.operand, NUMBER)
    return Value(f"try_subtract(0L, {operand.sql})", operand.type)


def _binary(valuing: Valuing, node: nodes.Binary) -> Value:
    operator = node.operator
    if operator in ("AND", "OR"):
        left, right = valuing.value(node.left, BOOLEAN), valuing.value(node.right, BOOLEAN)
        return Value(f"({left.sql} {operator} {right.sql})", BOOLEAN)
    if operator == "||":
        return Value(f"concat({valuing.value(node.left, TEXT).sql}, {valuing.value(node.right, TEXT).sql})", TEXT)
    if operator in _ARITHMETIC:
        return _arithmetic(valuing, node)
    values, type = valuing.common((node.left, node.right), TEXT if operator in _EQUALITY else NUMBER)
    refuse_uncomparable(type, node.at)
    return Value(f"({values[0].sql} {operator} {values[1].sql})", BOOLEAN)


def refuse_uncomparable(type: Type, at: int) -> None:
    if type.kind in _NOT_COMPARED:
        raise Refusal(f"{_shown(type.kind)} cannot be compared", at, "compare fields or items of it")


def _arithmetic(valuing: Valuing, node: nodes.Binary) -> Value:
    if isinstance(node.right, nodes.Interval) and node.operator in "+-":
        time, interval = valuing.value(node.left, TIMESTAMP), _interval(valuing, node.right)
        return Value(f"{_ARITHMETIC[node.operator]}({time.sql}, {interval.sql})", TIMESTAMP)
    left, right = valuing.value(node.left, NUMBER), valuing.value(node.right, NUMBER)
    exact = left.type.kind is right.type.kind is Kind.INTEGER and node.operator != "/"
    return Value(f"{_ARITHMETIC[node.operator]}({left.sql}, {right.sql})", INTEGER if exact else NUMBER)


def _interval(_: Valuing, node: nodes.Interval) -> Value:
    if node.unit == "MILLISECOND":
        return Value(f"INTERVAL '{node.count // 1000}.{node.count % 1000:03}' SECOND", INTERVAL)
    count, unit = (node.count * 7, "DAY") if node.unit == "WEEK" else (node.count, node.unit)
    return Value(f"INTERVAL '{count}' {unit}", INTERVAL)


def _between(valuing: Valuing, node: nodes.Between) -> Value:
    values, type = valuing.common((node.operand, node.low, node.high), NUMBER)
    refuse_uncomparable(type, node.at)
    return Value(f"({values[0].sql} BETWEEN {values[1].sql} AND {values[2].sql})", BOOLEAN)


def _one_of(valuing: Valuing, node: nodes.OneOf) -> Value:
    values, type = valuing.common((node.operand, *node.choices), TEXT)
    refuse_uncomparable(type, node.at)
    return Value(f"({values[0].sql} IN ({', '.join(value.sql for value in values[1:])}))", BOOLEAN)


def _matches(valuing: Valuing, node: nodes.Matches) -> Value:
    operand, pattern = valuing.value(node.operand, TEXT), text_literal(node.pattern.value)
    if node.operator == "RLIKE":
        valuing.probes.append((node.pattern.at, f"rlike('', {pattern})"))
    elif "\\" in node.pattern.value:
        raise Refusal("LIKE takes no backslash", node.pattern.at, "use RLIKE for a pattern with special characters")
    return Value(f"({operand.sql} {node.operator} {pattern})", BOOLEAN)


def _is_null(valuing: Valuing, node: nodes.IsNull) -> Value:
    value = valuing.value(node.operand)
    if value.type.kind is Kind.JSON:  # null in JSON is a value to Spark
        return Value(f"({value.sql} IS NULL OR is_variant_null({value.sql}))", BOOLEAN)
    return Value(f"({value.sql} IS NULL)", BOOLEAN)


def _case(valuing: Valuing, node: nodes.Case) -> Value:
    results = [result for _, result in node.branches]
    if node.default is not None:
        results.append(node.default)
    values, type = valuing.common(results, None)
    branches = []
    for (condition, _), value in zip(node.branches, values, strict=False):
        if node.operand is not None:
            condition = nodes.Binary(condition.at, "=", node.operand, condition)
        branches.append(f"WHEN {valuing.value(condition, BOOLEAN).sql} THEN {value.sql}")
    default = f" ELSE {values[-1].sql}" if node.default is not None else ""
    return Value(f"CASE {' '.join(branches)}{default} END", type)


def _cast(valuing: Valuing, node: nodes.Cast) -> Value:
    value, wanted = valuing.value(node.operand), SCALARS[node.type]
    found = converted(value, wanted, asked=True)
    if found is None:
        raise Refusal(f"{_shown(value.type.kind)} cannot become {_shown(wanted.kind)}", node.at)
    return found


def _star(_: Valuing, node: nodes.Star) -> Value:
    raise Refusal("* cannot stand here", node.at)


_COMPILERS: Final[dict[type[nodes.Node], Callable[[Valuing, Any], Value]]] = {
    nodes.Text: _text,
    nodes.Number: _number,
    nodes.Boolean: lambda _, node: Value("true" if node.value else "false", BOOLEAN),
    nodes.Null: lambda _, __: Value("NULL", NULL),
    nodes.Interval: _interval,
    nodes.Star: _star,
    nodes.Name: _name,
    nodes.Access: _access,
    nodes.Call: Valuing.call,
    nodes.Unary: _unary,
    nodes.Binary: _binary,
    nodes.Between: _between,
    nodes.OneOf: _one_of,
    nodes.Matches: _matches,
    nodes.IsNull: _is_null,
    nodes.Case: _case,
    nodes.Cast: _cast,
}
