"""A rule as data: the only things that a rule can say.

The compiler emits these nodes and nothing else, so what has no node here cannot reach Spark. ``at`` is the offset in
the rule's text; it does not take part in comparisons, because `GROUP BY payload.room` and `SELECT payload.room` are
the same expression at two places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields


@dataclass(frozen=True, slots=True)
class Node:
    at: int = field(compare=False)

    def children(self) -> Iterator[Node]:
        for attribute in fields(self):
            value = getattr(self, attribute.name)
            if isinstance(value, Node):
                yield value
            elif isinstance(value, tuple):
                for item in value:
                    if isinstance(item, Node):
                        yield item
                    elif isinstance(item, tuple):
                        yield from (part for part in item if isinstance(part, Node))

    def walk(self) -> Iterator[Node]:
        """This node and all below it."""
        yield self
        for child in self.children():
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Text(Node):
    value: str


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A number as it was written: digits with an optional point and exponent."""

    digits: str

    @property
    def is_integer(self) -> bool:
        return self.digits.isdigit()


@dataclass(frozen=True, slots=True)
class Boolean(Node):
    value: bool


@dataclass(frozen=True, slots=True)
class Null(Node):
    pass


@dataclass(frozen=True, slots=True)
class Interval(Node):
    count: int
    unit: str


@dataclass(frozen=True, slots=True)
class Star(Node):
    """``*``: all columns in a SELECT, all rows in count(*)."""


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A column, the payload, the item of FOREACH, the window, or an alias of the SELECT.

    ``written`` is the column's name in the text, where the message's has another: ``clientid``, ``TOPIC``.
    """

    name: str
    written: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Access(Node):
    """``base.key`` or ``base[key]``: a field by its name, an item by its number from 0."""

    base: Node
    key: str | int


@dataclass(frozen=True, slots=True)
class Call(Node):
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary(Node):
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Between(Node):
    operand: Node
    low: Node
    high: Node


@dataclass(frozen=True, slots=True)
class OneOf(Node):
    operand: Node
    choices: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Matches(Node):
    """LIKE (``pattern`` with % and _) or RLIKE (a regular expression)."""

    operator: str
    operand: Node
    pattern: Text


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    operand: Node


@dataclass(frozen=True, slots=True)
class Case(Node):
    operand: Node | None
    branches: tuple[tuple[Node, Node], ...]
    default: Node | None


@dataclass(frozen=True, slots=True)
class Cast(Node):
    operand: Node
    type: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the result: an expression and the name that AS gave it."""

    expression: Node
    alias: str | None
    at: int


@dataclass(frozen=True, slots=True)
class ForEach:
    """``FOREACH items AS name … INCASE condition``: one row for each item."""

    items: Node
    name: str
    condition: Node | None


@dataclass(frozen=True, slots=True)
class Filter:
    """A topic filter of FROM."""

    filter: str
    at: int


@dataclass(frozen=True, slots=True)
class Rule:
    text: str
    columns: tuple[Column, ...]
    filters: tuple[Filter, ...]
    foreach: ForEach | None = None
    where: Node | None = None
    group: tuple[Node, ...] = ()
    having: Node | None = None
    watermark: Text | None = None
