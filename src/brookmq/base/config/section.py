"""What every table of the configuration is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo


class Section(BaseModel):
    """A table of the configuration: nobody changes it, an unknown key is an error, and ``"5"`` is no number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)


@dataclass(frozen=True)
class Limit:
    """Marks a key that bounds something. ``unit`` is what is counted, when it is not seconds or bytes."""

    happens: str  # what happens at it
    unit: str = ""


def setting(
    default: Any, text: str, *, limit: Limit | None = None, examples: list[Any] | None = None, **bounds: Any
) -> Any:
    """A key of the configuration: its default (``...`` for none), its meaning, and what happens at the limit.

    ``conf example`` and the guide are made of these, so that they cannot differ from what is checked.
    """
    extra: dict[str, Any] | None = {"at_limit": limit.happens, "unit": limit.unit} if limit else None
    return Field(default, description=text, examples=examples, json_schema_extra=extra, **bounds)


def limit_of(field: FieldInfo) -> Limit | None:
    extra = field.json_schema_extra
    return Limit(str(extra["at_limit"]), str(extra["unit"])) if isinstance(extra, dict) else None
