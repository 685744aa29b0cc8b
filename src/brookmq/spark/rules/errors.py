"""What can be wrong with a rule or a schema, told so that its author can mend it."""

from __future__ import annotations

from brookmq.base.errors import OperationError


class RuleError(OperationError):
    """A rule that is refused. ``line`` and ``column`` count from 1 and name the first character of what is wrong."""

    def __init__(self, message: str, *, line: int = 1, column: int = 1, hint: str = "") -> None:
        super().__init__(f"line {line}, column {column}: {message}" + (f" ({hint})" if hint else ""))
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint


class Refusal(Exception):  # noqa: N818 - it never leaves the package: whoever has the text makes a RuleError of it
    """A rule is refused at an offset of its text."""

    def __init__(self, message: str, at: int, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.hint = hint

    def located_in(self, text: str) -> RuleError:
        """The error for the author. sqlglot's own columns point at the end of a token, so offsets are counted here."""
        before = text[: self.at]
        line_start = before.rfind("\n") + 1
        return RuleError(self.message, line=before.count("\n") + 1, column=self.at - line_start + 1, hint=self.hint)


class SchemaError(OperationError):
    """A schema of payloads that is refused; ``name`` is the schema's."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"schema {name}: {message}")
        self.name = name
