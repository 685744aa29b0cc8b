"""Whether actions can have the rows of a rule: do the columns that they name exist, and with the right type?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from brookmq.base.rule_documents import Action, DeltaAction, DocumentError, RepublishAction

ROW: Final = "json"  # the payload that is the whole row
DATE: Final = "date"  # made of published_at by actions that partition by it
_AS_PAYLOAD: Final = ("string", "binary")


def check_columns(actions: Sequence[Action], types: Mapping[str, str]) -> None:
    """``types`` by column, as Spark writes them; DocumentError says which action is wrong, and why."""
    for number, action in enumerate(actions):
        _check(action, types, f"actions.{number}")
        for below, fallback in enumerate(action.fallbacks):
            _check(fallback, types, f"actions.{number}.fallbacks.{below}")


def _check(action: Action, types: Mapping[str, str], where: str) -> None:
    if isinstance(action, RepublishAction):
        for name in action.topic_columns:
            if _type_of(name, types, f"{where}.topic") != "string":
                raise DocumentError(
                    f"{where}.topic: the column {name} is {types[name]}; a topic takes texts: CAST(… AS STRING)"
                )
        if action.payload != ROW and _type_of(action.payload, types, f"{where}.payload") not in _AS_PAYLOAD:
            raise DocumentError(
                f"{where}.payload: the column {action.payload} is {types[action.payload]}; a payload is a text or bytes"
            )
    elif isinstance(action, DeltaAction):
        for name in action.partition_by or ():
            if not (name == DATE and "published_at" in types):
                _type_of(name, types, f"{where}.partition_by")


def _type_of(name: str, types: Mapping[str, str], where: str) -> str:
    if name not in types:
        raise DocumentError(f"{where}: the rule has no column {name}; it has {', '.join(types)}")
    return types[name]
