"""The clauses of a rule.

    SELECT columns FROM "filter"[, "filter"] [WHERE …] [GROUP BY …] [HAVING …] [WATERMARK '10 seconds']
    FOREACH items [AS name] [DO columns] [INCASE condition] FROM … (as above)

The text is cut at the words of clauses outside of brackets; sqlglot reads the expressions in between. It never sees a
FROM, so it never makes a table, a path or a subquery of anything.
"""

from __future__ import annotations

from typing import Final

from sqlglot import Token, TokenType
from sqlglot import expressions as exp

from brookmq.mqtt.errors import PacketError
from brookmq.mqtt.topics import check_filter, is_shared
from brookmq.spark.rules import nodes
from brookmq.spark.rules.checking import Checker, checked_name, place
from brookmq.spark.rules.errors import Refusal
from brookmq.spark.rules.expressions import parse_expression
from brookmq.spark.rules.tokens import is_word, tokenize

COLUMNS_MAX: Final = 256
FILTERS_MAX: Final = 64

_AFTER_FROM: Final = ("FROM", "WHERE", "GROUP BY", "HAVING", "WATERMARK")
_SELECT: Final = ("SELECT", *_AFTER_FROM)
_FOREACH: Final = ("FOREACH", "DO", "INCASE", *_AFTER_FROM)
_OPENING: Final = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
_CLOSING: Final = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END)
_DEFAULT_ITEM: Final = "item"


def parse_rule(text: str) -> nodes.Rule:
    """The rule that the text is, checked; raises RuleError with the place of what is wrong."""
    try:
        return _Parsing(text).rule()
    except Refusal as refusal:
        raise refusal.located_in(text) from None


class _Parsing:
    def __init__(self, text: str) -> None:
        self._text = text
        self._clauses = _cut(tokenize(text), text)

    def rule(self) -> nodes.Rule:
        foreach = self._foreach() if "FOREACH" in self._clauses else None
        if foreach is None:
            columns = self._columns("SELECT")
        elif "DO" in self._clauses:
            columns = self._columns("DO")
        else:
            columns = (nodes.Column(nodes.Name(foreach.items.at, foreach.name), None, foreach.items.at),)
        return nodes.Rule(
            self._text,
            columns,
            self._filters(),
            foreach,
            self._condition("WHERE"),
            tuple(self._expression(part) for part in self._parts("GROUP BY")) if "GROUP BY" in self._clauses else (),
            self._condition("HAVING"),
            self._watermark(),
        )

    def _expression(self, tokens: list[Token]) -> nodes.Node:
        return Checker(tokens[0].start).node(parse_expression(tokens, self._text))

    def _condition(self, clause: str) -> nodes.Node | None:
        return self._expression(self._clauses[clause][1:]) if clause in self._clauses else None

    def _parts(self, clause: str) -> list[list[Token]]:
        """What the commas outside of brackets separate."""
        tokens = self._clauses[clause]
        parts: list[list[Token]] = [[]]
        depth = 0
        for token in tokens[1:]:
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            if token.token_type is TokenType.COMMA and depth == 0:
                if not parts[-1]:
                    raise Refusal("something is missing before this comma", token.start)
                parts.append([])
            else:
                parts[-1].append(token)
        if not parts[-1]:
            raise Refusal("something is missing after this", tokens[-1].start)
        return parts

    def _columns(self, clause: str) -> tuple[nodes.Column, ...]:
        parts = self._parts(clause)
        if len(parts) > COLUMNS_MAX:
            raise Refusal(f"more than {COLUMNS_MAX} columns", parts[COLUMNS_MAX][0].start)
        return tuple(self._column(part) for part in parts)

    def _column(self, tokens: list[Token]) -> nodes.Column:
        at = tokens[0].start
        if len(tokens) == 1 and tokens[0].token_type is TokenType.STAR:
            return nodes.Column(nodes.Star(at), None, at)
        if tokens[0].token_type is TokenType.DISTINCT:
            raise Refusal("DISTINCT is not allowed in a rule", at, "use GROUP BY")
        tree = parse_expression(tokens, self._text)
        if not isinstance(tree, exp.Alias):
            return nodes.Column(Checker(at).node(tree), None, at)
        name = tree.args["alias"]
        name_at = place(name, at)
        if len(tokens) < 2 or tokens[-2].token_type is not TokenType.ALIAS:
            raise Refusal(f"AS is missing before {name.name!r}", name_at)
        return nodes.Column(Checker(at).node(tree.this), checked_name(name.name, name_at), at)

    def _foreach(self) -> nodes.ForEach:
        column = self._column(self._clauses["FOREACH"][1:])
        return nodes.ForEach(column.expression, column.alias or _DEFAULT_ITEM, self._condition("INCASE"))

    def _filters(self) -> tuple[nodes.Filter, ...]:
        parts = self._parts("FROM")
        if len(parts) > FILTERS_MAX:
            raise Refusal(f"more than {FILTERS_MAX} topic filters", parts[FILTERS_MAX][0].start)
        return tuple(_filter(part) for part in parts)

    def _watermark(self) -> nodes.Text | None:
        if "WATERMARK" not in self._clauses:
            return None
        _, *rest = self._clauses["WATERMARK"]
        if len(rest) != 1 or rest[0].token_type is not TokenType.STRING:
            raise Refusal("WATERMARK takes a duration", rest[0].start, "WATERMARK '30 seconds'")
        return nodes.Text(rest[0].start, rest[0].text)


def _cut(tokens: list[Token], text: str) -> dict[str, list[Token]]:
    """The clauses with their tokens, the clause's word first."""
    first = tokens[0]
    if not (is_word(first, "SELECT") or is_word(first, "FOREACH")):
        raise Refusal("a rule begins with SELECT or FOREACH", first.start)
    order = _SELECT if is_word(first, "SELECT") else _FOREACH
    clauses: dict[str, list[Token]] = {}
    current: list[Token] = []
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        word = _clause(tokens, index, order) if depth == 0 else None
        if word is None:
            if token.token_type in (TokenType.SELECT, TokenType.FROM):
                raise Refusal(f"{token.text.upper()} is not allowed here", token.start, "a rule has no subqueries")
            current.append(token)
            continue
        if clauses and order.index(word) <= max(order.index(found) for found in clauses):
            raise Refusal(f"{word} cannot stand here", token.start, f"the order is {', '.join(order)}")
        current = clauses[word] = [token]
    for word, found in clauses.items():
        if len(found) == 1:
            raise Refusal(f"nothing follows {word}", found[0].start)
    if "FROM" not in clauses:
        raise Refusal("FROM is missing", len(text.rstrip()), 'FROM "topic/filter"')
    return clauses


def _clause(tokens: list[Token], index: int, order: tuple[str, ...]) -> str | None:
    """The clause that begins at this token, if one does. Names behind a point or AS were told apart before."""
    token = tokens[index]
    if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
        return None
    if index and tokens[index - 1].token_type in (TokenType.DOT, TokenType.ALIAS):
        return None
    word = " ".join(token.text.upper().split())
    return word if word in order else None


def _filter(tokens: list[Token]) -> nodes.Filter:
    token = tokens[0]
    if len(tokens) > 1:
        raise Refusal("FROM takes topic filters with commas in between", tokens[1].start, 'FROM "one/+", "another/#"')
    if token.token_type is not TokenType.IDENTIFIER:
        raise Refusal("a topic filter stands in double quotes", token.start, 'FROM "sensors/+/data"')
    if is_shared(token.text):
        raise Refusal("a rule has no shared subscription", token.start, "every rule sees each message once")
    try:
        check_filter(token.text)
    except PacketError as error:
        raise Refusal(str(error), token.start) from None
    return nodes.Filter(token.text, token.start)
