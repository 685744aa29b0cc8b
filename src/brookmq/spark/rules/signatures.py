"""What an entry of the table of functions says about a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from brookmq.spark.rules.types import Type


class Want(Enum):
    """What a function takes where it is not one type."""

    ANY = auto()
    """Whatever it is; values of a JSON payload stay JSON."""
    SAME = auto()
    """All arguments with this mark become one common type."""
    ITEM = auto()
    """The type of the items of the list that stands before it."""
    LIST = auto()
    """A list of anything; its items decide by the argument marked ITEM, or stay what they are."""


class Result(Enum):
    FIRST = auto()
    """The type of the first argument."""
    COMMON = auto()
    """The common type of the arguments marked SAME."""
    ITEM = auto()
    """The type of the first argument's items."""
    RECORD = auto()
    """A record of the names and values given."""
    LIST = auto()
    """A list of the common type."""


@dataclass(frozen=True, slots=True)
class Constant:
    """An argument that must stand in the rule as a literal. ``check`` says what is wrong with it, if something is."""

    type: Type
    check: Callable[[str], str] = lambda _: ""


Parameter = Type | Want | Constant


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    shown: str
    """The call as the guide shows it: ``round(x[, digits])``."""
    parameters: tuple[Parameter, ...]
    result: Type | Result
    emit: str | Mapping[int, str]
    """Spark SQL with {0}, {1} for arguments and {all} for all of them; by the number of arguments if that matters."""
    doc: str
    optional: int = 0
    """How many of the last parameters may be missing."""
    repeated: bool = False
    """Whether the last parameter may come any number of times."""
    aggregate: bool = False
    probe: str | Mapping[int, str] = ""
    """Spark SQL over the constants alone; it fails where they are wrong (a pattern, a time zone)."""
    json_as: Type | None = None
    """What arguments marked SAME become when all are values of a JSON payload; None: they stay JSON."""

    @property
    def arguments_min(self) -> int:
        return len(self.parameters) - self.optional

    def parameter(self, index: int) -> Parameter:
        return self.parameters[min(index, len(self.parameters) - 1)]

    def accepts(self, count: int) -> bool:
        return count >= self.arguments_min and (self.repeated or count <= len(self.parameters))

    def written(self, arguments: Sequence[str]) -> str:
        return _filled(self.emit, arguments)

    def probed(self, arguments: Sequence[str]) -> str:
        return _filled(self.probe, arguments)


def _filled(template: str | Mapping[int, str], arguments: Sequence[str]) -> str:
    text = template if isinstance(template, str) else template[len(arguments)]
    return text.format(*arguments, all=", ".join(arguments))


def function(
    shown: str,
    parameters: tuple[Parameter, ...],
    result: Type | Result,
    emit: str | Mapping[int, str],
    doc: str,
    *,
    optional: int = 0,
    repeated: bool = False,
    aggregate: bool = False,
    probe: str | Mapping[int, str] = "",
    json_as: Type | None = None,
) -> Function:
    """An entry of the table; its name is in the call as it is shown."""
    name = shown.partition("(")[0]
    return Function(name, shown, parameters, result, emit, doc, optional, repeated, aggregate, probe, json_as)
