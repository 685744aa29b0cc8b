"""From sqlglot's tree to our own nodes: what is not on these lists is refused.

Each kind of node has its builder and the set of arguments that it may carry; an argument that is set and not on the
list (a FILTER clause, SYMMETRIC, a subquery in IN) is refused as well, also those that later versions of sqlglot add.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from typing import Final

from sqlglot import expressions as exp

from brookmq.spark.rules import nodes
from brookmq.spark.rules.columns import MESSAGE_COLUMNS, OTHER_NAMES
from brookmq.spark.rules.errors import Refusal
from brookmq.spark.rules.functions import FUNCTIONS

DEPTH_MAX: Final = 100
"""Of the tree: a chain of 100 operators, far below the recursion limits of Python and of Spark's parser."""
NAME_CHARACTERS_MAX: Final = 128
ITEM_NUMBER_MAX: Final = 1_000_000
INTERVAL_DAYS_MAX: Final = 36_525
"""A century: added to a time between the years 1 and 9999 it stays far inside of what Spark can hold."""

_NUMBER: Final = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?\Z")
_COMPARISONS: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_BINARY: Final[dict[type[exp.Expr], str]] = {
    **_COMPARISONS,
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.And: "AND",
    exp.Or: "OR",
}
_UNIT_SECONDS: Final = {"MILLISECOND": 0.001, "SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400, "WEEK": 604_800}
CAST_TYPES: Final = {
    "BOOLEAN": "boolean",
    "INT": "integer",
    "BIGINT": "integer",
    "DOUBLE": "number",
    "FLOAT": "number",
    "TEXT": "text",
    "VARCHAR": "text",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamp",
    "DATE": "date",
    "BINARY": "bytes",
    "VARBINARY": "bytes",
}


class Checker:
    """Builds nodes for the expressions of one rule; ``at`` is where a piece of it begins, for nodes without a place."""

    def __init__(self, at: int) -> None:
        self._at = at
        self._depth = 0

    def node(self, tree: exp.Expr) -> nodes.Node:
        builder = _BUILDERS.get(type(tree))
        at = place(tree, self._at)
        if builder is None:
            raise Refusal(_unknown(tree), at)
        build, allowed = builder
        for name, value in tree.args.items():
            if name not in allowed and name != "negate" and value not in (None, False, []):
                raise Refusal(f"{name.strip('_').upper().replace('_', ' ')} is not allowed in a rule", at)
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise Refusal(f"more than {DEPTH_MAX} operators and calls inside each other", at)
        node = build(self, tree, at)
        self._depth -= 1
        return nodes.Unary(at, "NOT", node) if tree.args.get("negate") else node  # NOT LIKE

    def nodes(self, trees: Sequence[exp.Expr]) -> tuple[nodes.Node, ...]:
        return tuple(self.node(tree) for tree in trees)


def place(tree: exp.Expr, otherwise: int) -> int:
    """The offset where the tree begins in the text: the first of all its parts that know their place."""
    starts = [part.meta["start"] for part in tree.walk() if "start" in part.meta]
    return min(starts, default=otherwise)


def checked_name(name: str, at: int) -> str:
    """A name for a column: no characters that mean something to Spark's parser or to a file system."""
    if len(name) > NAME_CHARACTERS_MAX:
        raise Refusal(f"the name is longer than {NAME_CHARACTERS_MAX} characters", at)
    if not re.fullmatch(r"[^\W\d][\w \-]*", name) or name.startswith("__"):
        hint = "letters, digits, _, - and blanks, a letter first, no __ at the beginning"
        raise Refusal(f"{name!r} is not a name for a column", at, hint)
    return name


def _unknown(tree: exp.Expr) -> str:
    words = {
        exp.Subquery: "a subquery",
        exp.Select: "a subquery",
        exp.Window: "OVER",
        exp.Alias: "AS inside an expression",
        exp.Tuple: "a list in parentheses",
        exp.Array: "an array in brackets",
        exp.Distinct: "DISTINCT",
        exp.Star: "*",
    }
    return f"{words.get(type(tree), type(tree).__name__)} is not allowed here"


def _literal(_: Checker, tree: exp.Expr, at: int) -> nodes.Node:
    if tree.args.get("is_string"):
        return nodes.Text(at, tree.name)
    if not _NUMBER.match(tree.name) or float(tree.name) == float("inf"):
        raise Refusal(f"{tree.name!r} is not a number that a rule can have", at)
    return nodes.Number(at, tree.name)


def _column(_: Checker, tree: exp.Expr, at: int) -> nodes.Node:
    parts = [tree.args[key] for key in ("catalog", "db", "table", "this") if tree.args.get(key) is not None]
    for part in parts:
        if not isinstance(part, exp.Identifier):
            raise Refusal(
                f"{part.name or '*'!r} is not a name", place(part, at), 'a field: payload.name, payload."a b"'
            )
    written = parts[0].name
    lower = OTHER_NAMES.get(written.lower(), written.lower())
    node: nodes.Node = nodes.Name(at, lower if lower in MESSAGE_COLUMNS else written, written)
    for part in parts[1:]:
        node = nodes.Access(at, node, part.name)
    return node


def _dot(checker: Checker, tree: exp.Expr, at: int) -> nodes.Node:
    field = tree.expression
    if not isinstance(field, exp.Identifier):
        raise Refusal("only a field's name can follow a point", place(field, at))
    return nodes.Access(at, checker.node(tree.this), field.name)


def _bracket(checker: Checker, tree: exp.Expr, at: int) -> nodes.Node:
    keys = [_name_in_brackets(key) for key in tree.expressions]
    if len(keys) != 1 or not isinstance(keys[0], exp.Literal):
        hint = "an item's number from 0, or a field's name in single quotes"
        raise Refusal("brackets take one constant", place(keys[0], at) if keys else at, hint)
    if keys[0].args.get("is_string"):
        return nodes.Access(at, checker.node(tree.this), keys[0].name)
    if not keys[0].name.isdigit() or int(keys[0].name) > ITEM_NUMBER_MAX:
        raise Refusal(f"{keys[0].name} is not an item's number", place(keys[0], at))
    return nodes.Access(at, checker.node(tree.this), int(keys[0].name))


def _name_in_brackets(key: exp.Expr) -> exp.Expr:
    """``payload["a b"]`` is what other languages write for ``payload['a b']``."""
    if isinstance(key, exp.Column) and isinstance(key.this, exp.Identifier) and key.this.args.get("quoted"):
        return exp.Literal.string(key.this.name).update_positions(key.this)
    return key


def _call(checker: Checker, tree: exp.Expr, at: int) -> nodes.Node:
    if not isinstance(tree.this, str):
        raise Refusal("a function's name has no quotes", at)
    name = tree.this.lower()
    function = FUNCTIONS.get(name)
    if function is None:
        near = difflib.get_close_matches(name, FUNCTIONS, 1)
        raise Refusal(f"there is no function {name}", at, f"did you mean {near[0]}?" if near else "")
    arguments: list[nodes.Node] = []
    for argument in tree.expressions:
        if isinstance(argument, exp.Star) and name == "count" and len(tree.expressions) == 1:
            arguments.append(nodes.Star(place(argument, at)))
        elif isinstance(argument, exp.Distinct):
            raise Refusal("a stream cannot count distinct values", place(argument, at), "use approx_count_distinct(…)")
        else:
            arguments.append(checker.node(argument))
    return nodes.Call(at, function.name, tuple(arguments))


def _binary(checker: Checker, tree: exp.Expr, at: int) -> nodes.Node:
    return nodes.Binary(at, _BINARY[type(tree)], checker.node(tree.this), checker.node(tree.expression))


def _between(checker: Checker, tree: exp.Expr, at: int) -> nodes.Node:
    return nodes.Between(at, checker.node(tree.this), checker.node(tree.args["low"]), checker.node(tree.args["high"]))


def _in(checker: Checker, tree: exp.Expr, at: int) -> nodes.Node:
    if not tree.expressions:
        raise Refusal("IN takes a list of values", at)
    return nodes.OneOf(at, checker.node(tree.this), checker.nodes(tree.expressions))


def _matches(checker: Checker, tree: exp.Expr, at: int) -> nodes.Node:
    pattern = checker.node(tree.expression)
    operator = "LIKE" if isinstance(tree, exp.Like) else "RLIKE"
    if not isinstance(pattern, nodes.Text):
        raise Refusal(f"the pattern of {operator} is a text in single quotes", pattern.at)
    return nodes.Matches(at, operator, checker.node(tree.this), pattern)


def _is(checker: Checker, tree: exp.Expr, at: int) -> nodes.Node:
    operand = checker.node(tree.this)
    if isinstance(tree.expression, exp.Null):
        return nodes.IsNull(at, operand)
    if isinstance(tree.expression, exp.Boolean):  # never NULL, unlike =
        equal = nodes.Binary(at, "=", operand, checker.node(tree.expression))
        return nodes.Call(at, "coalesce", (equal, nodes.Boolean(at, False)))
    raise Refusal("IS is for NULL, TRUE and FALSE", at)


def _case(checker: Checker, tree: exp.Expr, at: int) -> nodes.Node:
    branches = []
    for branch in tree.args["ifs"]:
        if not isinstance(branch, exp.If) or branch.args.get("false") is not None:
            raise Refusal("CASE takes WHEN … THEN …", place(branch, at))
        branches.append((checker.node(branch.this), checker.node(branch.args["true"])))
    operand, default = tree.args.get("this"), tree.args.get("default")
    return nodes.Case(
        at,
        checker.node(operand) if operand is not None else None,
        tuple(branches),
        checker.node(default) if default is not None else None,
    )


def _cast(checker: Checker, tree: exp.Expr, at: int) -> nodes.Node:
    to = tree.args["to"]
    name = getattr(to.this, "name", "") if isinstance(to, exp.DataType) and not to.expressions else ""
    if name not in CAST_TYPES or to.args.get("values") or to.args.get("kind"):
        raise Refusal("this type is not for CAST", at, "BOOLEAN, BIGINT, DOUBLE, STRING, TIMESTAMP, DATE or BINARY")
    return nodes.Cast(at, checker.node(tree.this), CAST_TYPES[name])


def _interval(_: Checker, tree: exp.Expr, at: int) -> nodes.Node:
    unit = tree.args.get("unit")
    word = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    count = tree.this.name if isinstance(tree.this, exp.Literal) else ""
    if word not in _UNIT_SECONDS or not count.isdigit():
        raise Refusal("this is not an interval", at, "INTERVAL '5' MINUTE; SECOND, MINUTE, HOUR, DAY or WEEK")
    if int(count) * _UNIT_SECONDS[word] > INTERVAL_DAYS_MAX * 86_400:
        raise Refusal("an interval is at most a century", at)
    return nodes.Interval(at, int(count), word)


_Builder = Callable[[Checker, exp.Expr, int], nodes.Node]
_TWO: Final = frozenset({"this", "expression"})
_BUILDERS: Final[dict[type[exp.Expr], tuple[_Builder, frozenset[str]]]] = {
    exp.Literal: (_literal, frozenset({"this", "is_string"})),
    exp.Boolean: (lambda _, tree, at: nodes.Boolean(at, bool(tree.this)), frozenset({"this"})),
    exp.Null: (lambda _, __, at: nodes.Null(at), frozenset()),
    exp.Column: (_column, frozenset({"this", "table", "db", "catalog"})),
    exp.Dot: (_dot, _TWO),
    exp.Bracket: (_bracket, frozenset({"this", "expressions"})),
    exp.Anonymous: (_call, frozenset({"this", "expressions"})),
    exp.Not: (lambda checker, tree, at: nodes.Unary(at, "NOT", checker.node(tree.this)), frozenset({"this"})),
    exp.Neg: (lambda checker, tree, at: nodes.Unary(at, "-", checker.node(tree.this)), frozenset({"this"})),
    **dict.fromkeys(_BINARY, (_binary, _TWO)),
    exp.Div: (_binary, _TWO | {"typed", "safe"}),
    exp.DPipe: (_binary, _TWO | {"safe"}),
    exp.Between: (_between, frozenset({"this", "low", "high"})),
    exp.In: (_in, frozenset({"this", "expressions"})),
    exp.Like: (_matches, _TWO),
    exp.RegexpLike: (_matches, _TWO),
    exp.Is: (_is, _TWO),
    exp.Case: (_case, frozenset({"this", "ifs", "default"})),
    exp.Cast: (_cast, frozenset({"this", "to"})),
    exp.Interval: (_interval, frozenset({"this", "unit"})),
    exp.Paren: (lambda checker, tree, _: checker.node(tree.this), frozenset({"this"})),
}
