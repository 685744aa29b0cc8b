"""Calls of functions: their arguments as the types that the table asks for, and the type of what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brookmq.spark.rules import constants, nodes
from brookmq.spark.rules.emitting import Value, converted
from brookmq.spark.rules.errors import Refusal
from brookmq.spark.rules.functions import FUNCTIONS
from brookmq.spark.rules.signatures import Constant, Function, Result, Want
from brookmq.spark.rules.types import INTEGER, JSON, NUMBER, TEXT, Kind, Type, list_of, record_of

if TYPE_CHECKING:
    from brookmq.spark.rules.valuing import Valuing

_SCALARS_IN_JSON = (Kind.BOOLEAN, Kind.INTEGER, Kind.NUMBER, Kind.TEXT, Kind.BYTES, Kind.TIMESTAMP, Kind.DATE)


def call_value(valuing: Valuing, node: nodes.Call) -> Value:
    function = FUNCTIONS[node.name]
    if function.name == "window":
        raise Refusal("window stands in GROUP BY only", node.at, "then window.start and window.end are columns")
    if function.name == "object":
        return _object(valuing, node)
    if not function.accepts(len(node.arguments)):
        raise Refusal(f"{function.name} takes other arguments", node.at, function.shown)
    if isinstance(node.arguments[0] if node.arguments else None, nodes.Star):
        return Value("count(1)", INTEGER)
    values, common = _arguments(valuing, function, node)
    if function.probe:
        _probe(valuing, function, node, values)
    sql = function.written([value.sql for value in values])
    return Value(sql, _result(function, values, common))


def _arguments(valuing: Valuing, function: Function, node: nodes.Call) -> tuple[list[Value], Type]:
    marked = [argument for index, argument in enumerate(node.arguments) if function.parameter(index) is Want.SAME]
    same, common = valuing.common(marked, function.json_as) if marked else ([], TEXT)
    same_values = iter(same)
    values: list[Value] = []
    for index, argument in enumerate(node.arguments):
        parameter = function.parameter(index)
        if parameter is Want.SAME:
            values.append(next(same_values))
        elif parameter is Want.ANY:
            values.append(shown(valuing.value(argument)))
        elif parameter is Want.LIST:
            values.append(_list(valuing, function, node, argument))
        elif parameter is Want.ITEM:
            assert values[0].type.element is not None
            values.append(valuing.value(argument, values[0].type.element))
        elif isinstance(parameter, Constant):
            values.append(_constant(valuing, parameter, argument))
        elif isinstance(parameter, Type):
            values.append(valuing.value(argument, parameter))
    if function.name == "to_json" and values[0].type.kind in _SCALARS_IN_JSON:
        values = [Value(f"CAST({values[0].sql} AS VARIANT)", JSON)]
    if function.name == "coalesce" and common.kind is Kind.JSON:  # null in JSON is a value to Spark
        values = [Value(f"if(is_variant_null({value.sql}), NULL, {value.sql})", JSON) for value in values]
    return values, common


def shown(value: Value) -> Value:
    """A value where no type is needed: the whole payload of a message is its text, NULL is one, too."""
    if (value.raw and value.type.kind is Kind.JSON) or value.type.kind is Kind.NULL:
        found = converted(value, TEXT)
        assert found is not None
        return found
    return value


def _list(valuing: Valuing, function: Function, node: nodes.Call, argument: nodes.Node) -> Value:
    value = valuing.value(argument)
    if value.type.kind is Kind.LIST:
        return value
    if value.type.kind not in (Kind.JSON, Kind.NULL):
        raise Refusal(f"a list is needed here, this is {value.type.kind}", argument.at)
    element = JSON
    if Want.ITEM in function.parameters:  # the type of the value that is looked for decides
        kind = valuing.value(node.arguments[1]).type.kind
        by_kind = {Kind.INTEGER: NUMBER, Kind.NUMBER: NUMBER, Kind.JSON: TEXT, Kind.NULL: TEXT}
        element = by_kind.get(kind) or valuing.value(node.arguments[1]).type
    found = converted(value, list_of(element))
    assert found is not None
    return found


def _constant(valuing: Valuing, parameter: Constant, argument: nodes.Node) -> Value:
    kind = parameter.type.kind
    if kind is Kind.TEXT and isinstance(argument, nodes.Text):
        wrong = parameter.check(argument.value)
    elif isinstance(argument, nodes.Number) and (argument.is_integer or kind is Kind.NUMBER) and kind is not Kind.TEXT:
        wrong = parameter.check(argument.digits)
    else:
        what = {Kind.TEXT: "a text in single quotes", Kind.INTEGER: "a whole number"}.get(kind, "a number")
        raise Refusal(f"{what} is needed here", argument.at, "it cannot come from the message")
    if wrong:
        raise Refusal(wrong, argument.at)
    return valuing.value(argument)


def _probe(valuing: Valuing, function: Function, node: nodes.Call, values: list[Value]) -> None:
    constant = next((index for index in range(len(values)) if isinstance(function.parameter(index), Constant)), None)
    if constant is not None:
        sql = function.probed([value.sql for value in values])
        valuing.probes.append((node.arguments[constant].at, sql))


def _result(function: Function, values: list[Value], common: Type) -> Type:
    if isinstance(function.result, Type):
        return function.result
    if function.result is Result.COMMON:
        return common
    if function.result is Result.LIST:
        return list_of(common)
    if function.result is Result.ITEM:
        return values[0].type.element or JSON
    if any(value.type.kind is Kind.NUMBER for value in values):  # mod(1, 0.5)
        return NUMBER
    return values[0].type


def _object(valuing: Valuing, node: nodes.Call) -> Value:
    if not node.arguments or len(node.arguments) % 2:
        raise Refusal("object takes names and values in turn", node.at, "object('t', payload.temp, 'room', topic)")
    fields: list[tuple[str, Type]] = []
    parts: list[str] = []
    for name, content in zip(node.arguments[::2], node.arguments[1::2], strict=True):
        if not isinstance(name, nodes.Text):
            raise Refusal("a field's name in single quotes is needed here", name.at)
        if wrong := constants.field_name(name.value):
            raise Refusal(wrong, name.at)
        if any(name.value.lower() == known.lower() for known, _ in fields):
            raise Refusal(f"the field {name.value} is there twice", name.at)
        value = shown(valuing.value(content))
        fields.append((name.value, value.type))
        parts += [valuing.value(name).sql, value.sql]
    return Value(f"named_struct({', '.join(parts)})", record_of(fields))
