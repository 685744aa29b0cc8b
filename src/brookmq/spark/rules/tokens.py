"""From text to tokens, with everything refused that has no place in a rule.

sqlglot's tokenizer knows the words of all SQL dialects. Here its tokens become few kinds: symbols from a list, the
words that rules have, and plain names. A word of another statement is refused by name, so that nothing of it is left
for the parser to understand in its own way. What lies between tokens must be blank or a ``--`` comment: that closes
hints, block comments and templates whatever the tokenizer thinks of them.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot import Token, TokenType
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError

from brookmq.spark.rules.errors import Refusal

TEXT_CHARACTERS_MAX: Final = 8_192
"""More than any rule needs, and little enough for parser and Spark's code generation."""
TOKENS_MAX: Final = 1_500
NESTING_MAX: Final = 32
"""Brackets and CASE inside each other: each level is several frames in sqlglot and in Spark's parser."""

_BETWEEN_TOKENS: Final = re.compile(r"(?:\s+|--[^\n]*(?:\n|\Z))*")
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

T = TokenType
_SYMBOLS: Final = frozenset(
    {T.DOT, T.COMMA, T.L_PAREN, T.R_PAREN, T.L_BRACKET, T.R_BRACKET, T.EQ, T.NEQ, T.LT, T.LTE, T.GT, T.GTE}
    | {T.PLUS, T.DASH, T.STAR, T.SLASH, T.MOD, T.DPIPE, T.DCOLON, T.STRING, T.NUMBER, T.IDENTIFIER}
)
_WORDS: Final = frozenset(
    {T.SELECT, T.FROM, T.WHERE, T.GROUP_BY, T.HAVING, T.ALIAS, T.AND, T.OR, T.NOT, T.IS, T.NULL, T.TRUE, T.FALSE}
    | {T.IN, T.BETWEEN, T.LIKE, T.RLIKE, T.CASE, T.WHEN, T.THEN, T.ELSE, T.END, T.INTERVAL, T.DISTINCT}
)
_TYPES: Final = frozenset(
    {T.BOOLEAN, T.INT, T.BIGINT, T.DOUBLE, T.FLOAT, T.TEXT, T.VARCHAR, T.TIMESTAMP, T.DATE, T.BINARY, T.VARBINARY}
)
_REFUSED: Final = frozenset(
    [
        "ALTER",
        "ANALYZE",
        "ATTACH",
        "CACHE",
        "CALL",
        "CLUSTER",
        "COMMENT",
        "COMMIT",
        "COPY",
        "CREATE",
        "CROSS",
        "DELETE",
        "DESC",
        "DESCRIBE",
        "DETACH",
        "DROP",
        "EXCEPT",
        "EXECUTE",
        "EXISTS",
        "EXPLAIN",
        "EXPORT",
        "FETCH",
        "FULL",
        "GRANT",
        "IMPORT",
        "INNER",
        "INSERT",
        "INTERSECT",
        "INTO",
        "JOIN",
        "KILL",
        "LATERAL",
        "LIMIT",
        "LOAD",
        "MATCH_RECOGNIZE",
        "MERGE",
        "MINUS",
        "NATURAL",
        "OUTER",
        "OVER",
        "PIVOT",
        "PRAGMA",
        "QUALIFY",
        "REFRESH",
        "RESET",
        "REVOKE",
        "ROLLBACK",
        "SET",
        "SHOW",
        "SORT",
        "TABLE",
        "TABLESAMPLE",
        "TRUNCATE",
        "UNCACHE",
        "UNION",
        "UNNEST",
        "UNPIVOT",
        "UPDATE",
        "USE",
        "USING",
        "VALUES",
        "WITH",
    ]
)
_HINTS: Final = {
    "JOIN": 'a rule reads topics only: FROM "one/+", "another/#"',
    "LIMIT": "a stream has no end: use WHERE or a window",
    "ORDER BY": "a stream has no last row to sort: use max_by or a window",
    "UNION": 'write several topic filters: FROM "one/+", "another/#"',
    "OVER": "use GROUP BY window(published_at, '1 minute')",
    "WITH": "a rule is a single SELECT or FOREACH",
}
_DIALECT: Final = Dialect()


def tokenize(text: str) -> list[Token]:
    """The tokens of a rule, without a semicolon at its end."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise Refusal(f"the rule is longer than {TEXT_CHARACTERS_MAX} characters", TEXT_CHARACTERS_MAX)
    _refuse_control_characters(text)
    try:
        found = _DIALECT.tokenize(text)
    except TokenError:
        at = _open_quote(text)
        raise Refusal("this text cannot be read", at, "is a quote or a comment not closed?") from None
    _refuse_what_lies_between(text, found)
    if found and found[-1].token_type is T.SEMICOLON:
        found.pop()
    if not found:
        raise Refusal("the rule is empty", 0, 'write SELECT … FROM "topic/filter"')
    if len(found) > TOKENS_MAX:
        raise Refusal(f"the rule has more than {TOKENS_MAX} words and symbols", found[TOKENS_MAX].start)
    tokens = [_token(found, index) for index in range(len(found))]
    _refuse_deep_nesting(tokens)
    return tokens


def is_word(token: Token, word: str) -> bool:
    """Whether the token is this unquoted word."""
    return token.token_type is not T.IDENTIFIER and token.token_type is not T.STRING and token.text.upper() == word


def _token(tokens: list[Token], index: int) -> Token:
    """The token as the parser may see it: all words that mean nothing in rules are names."""
    token = tokens[index]
    kind = token.token_type
    before = tokens[index - 1].token_type if index else None
    if kind in _SYMBOLS:
        return token
    if _WORD.match(token.text) is None and kind not in _WORDS:
        word = " ".join(token.text.upper().split())
        if kind is T.SEMICOLON:
            raise Refusal("a rule is one statement", token.start, "remove everything from the semicolon on")
        if _WORD.match(word.replace(" ", "_")):
            raise Refusal(f"{word} is not allowed in a rule", token.start, _HINTS.get(word, ""))
        raise Refusal(f"{token.text!r} is not allowed in a rule", token.start)
    if before is T.DOT or (before is T.ALIAS and kind not in _TYPES):  # payload.order, … AS limit
        return _name(token)
    if kind in _WORDS or (kind in _TYPES and before is not None):
        return token
    word = token.text.upper()
    if word in _REFUSED:
        raise Refusal(f"{word} is not allowed in a rule", token.start, _HINTS.get(word, ""))
    return _name(token)


def _name(token: Token) -> Token:
    if token.token_type is T.VAR:
        return token
    return Token(T.VAR, token.text, token.line, token.col, token.start, token.end)


def _refuse_control_characters(text: str) -> None:
    for at, character in enumerate(text):
        if (character < " " and character not in "\t\n\r") or character == "\x7f" or "\ud800" <= character <= "\udfff":
            raise Refusal("control characters are not allowed in a rule", at)


def _refuse_what_lies_between(text: str, tokens: list[Token]) -> None:
    at = 0
    for start, end in [*((token.start, token.end + 1) for token in tokens), (len(text), len(text))]:
        reached = _BETWEEN_TOKENS.match(text, at)
        assert reached is not None  # it matches nothing, too
        if reached.end() != start:
            raise Refusal("block comments and hints are not allowed in a rule", reached.end(), "write -- comments")
        at = end


def _refuse_deep_nesting(tokens: list[Token]) -> None:
    depth = 0
    for token in tokens:
        if token.token_type in (T.L_PAREN, T.L_BRACKET, T.CASE):
            depth += 1
        elif token.token_type in (T.R_PAREN, T.R_BRACKET, T.END):
            depth -= 1
        if depth > NESTING_MAX:
            raise Refusal(f"more than {NESTING_MAX} brackets inside each other", token.start)


def _open_quote(text: str) -> int:
    """Where the last quote begins that nothing closes; the start of the text if all are closed."""
    at = 0
    while at < len(text):
        if text[at] in "'\"":
            closing = text.find(text[at], at + 1)
            if closing < 0:
                return at
            at = closing
        elif text.startswith("/*", at):
            closing = text.find("*/", at)
            if closing < 0:
                return at
            at = closing + 1
        at += 1
    return 0
