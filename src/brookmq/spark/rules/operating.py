"""Each kind of node as Spark SQL, by the types that `valuing` finds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from brookmq.spark.rules import nodes
from brookmq.spark.rules.emitting import Value, converted, number_literal, text_literal
from brookmq.spark.rules.errors import Refusal
from brookmq.spark.rules.scope import key_of
from brookmq.spark.rules.types import BOOLEAN, INTEGER, INTERVAL, NULL, NUMBER, SCALARS, TEXT, TIMESTAMP, Kind, Type

if TYPE_CHECKING:
    from brookmq.spark.rules.valuing import Valuing

_ARITHMETIC: Final = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
_EQUALITY: Final = ("=", "<>")
_NOT_COMPARED: Final = (Kind.LIST, Kind.RECORD, Kind.MAP, Kind.INTERVAL)
_ARTICLES: Final = {Kind.TEXT: "text", Kind.BYTES: "bytes", Kind.JSON: "json", Kind.INTEGER: "an integer"}


def shown_kind(kind: Kind) -> str:
    return _ARTICLES.get(kind, f"a {kind}")


def cast_hint(wanted: Type) -> str:
    return f"CAST(… AS {wanted.spark.upper()})" if wanted.kind in (k.kind for k in SCALARS.values()) else ""


def time_literal(node: nodes.Text, natural: Value, wanted: Type) -> Value:
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
        raise Refusal(f"{shown_kind(type.kind)} cannot be compared", at, "compare fields or items of it")


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
        raise Refusal(f"{shown_kind(value.type.kind)} cannot become {shown_kind(wanted.kind)}", node.at)
    return found


def _star(_: Valuing, node: nodes.Star) -> Value:
    raise Refusal("* cannot stand here", node.at)


COMPILERS: Final[dict[type[nodes.Node], Callable[[Valuing, Any], Value]]] = {
    nodes.Text: _text,
    nodes.Number: _number,
    nodes.Boolean: lambda _, node: Value("true" if node.value else "false", BOOLEAN),
    nodes.Null: lambda _, __: Value("NULL", NULL),
    nodes.Interval: _interval,
    nodes.Star: _star,
    nodes.Name: _name,
    nodes.Access: _access,
    nodes.Call: lambda valuing, node: valuing.call(node),
    nodes.Unary: _unary,
    nodes.Binary: _binary,
    nodes.Between: _between,
    nodes.OneOf: _one_of,
    nodes.Matches: _matches,
    nodes.IsNull: _is_null,
    nodes.Case: _case,
    nodes.Cast: _cast,
}
