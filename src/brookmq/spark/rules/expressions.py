"""The sqlglot parser that reads the expressions of a rule.

It knows no functions: every call comes back as a name with arguments, so that the table in `functions` alone says what
there is. CAST and CASE are the only forms with a grammar of their own.
"""

from __future__ import annotations

from typing import Any, Final

from sqlglot import Token, TokenType
from sqlglot import expressions as exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.parser import Parser

from brookmq.spark.rules.errors import Refusal

_DIALECT: Final = Dialect()


class RuleParser(Parser):
    FUNCTIONS = {}  # noqa: RUF012 - sqlglot declares them as class variables
    FUNCTION_PARSERS = {"CAST": Parser.FUNCTION_PARSERS["CAST"]}  # noqa: RUF012
    NO_PAREN_FUNCTIONS = {}  # noqa: RUF012
    NO_PAREN_FUNCTION_PARSERS = {"CASE": Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}  # noqa: RUF012

    def _parse_interval(self, *arguments: Any, **named: Any) -> Any:
        """As it is, with the place that sqlglot forgets."""
        token = self._curr
        found = super()._parse_interval(*arguments, **named)
        return found.update_positions(token) if isinstance(found, exp.Interval) else found


def parse_expression(tokens: list[Token], text: str) -> exp.Expr:
    """The only expression in the tokens, which are a part of those of the text."""
    try:
        found = RuleParser(dialect=_DIALECT, error_level=ErrorLevel.RAISE).parse(tokens, text)
    except ParseError as error:
        raise _refusal(error, tokens) from None
    except RecursionError:
        raise Refusal("this is nested too deeply", tokens[0].start) from None
    if len(found) != 1 or found[0] is None:
        raise Refusal("an expression is needed here", tokens[0].start)
    return found[0]


def _refusal(error: ParseError, tokens: list[Token]) -> Refusal:
    """sqlglot names a token by the line and column of its end: find it, to tell where it starts."""
    first = error.errors[0] if error.errors else {}
    for token in tokens:
        if (token.line, token.col) == (first.get("line"), first.get("col")):
            at, word = token.start, token.text
            break
    else:
        at, word = tokens[-1].start, tokens[-1].text
    if tokens[-1].start == at and tokens[-1].token_type not in (TokenType.VAR, TokenType.NUMBER, TokenType.STRING):
        return Refusal(f"the expression ends too early, at {word!r}", at)
    return Refusal(f"this cannot be read, at {word!r}", at)
