"""What the model expects at a path, such as ``listeners.default.bind``.

Environment variables are text and have to be read as what their key expects; error messages suggest keys that exist.
Both ask here.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr

from brookmq.base.config.values import Unit

SECRET_FILE_SUFFIX = "_file"  # noqa: S105 (part of a key's name)


@dataclass(frozen=True)
class Place:
    """A place in the model: the type that stands there and its marks."""

    annotation: Any
    marks: tuple[Any, ...] = ()

    @property
    def model(self) -> type[BaseModel] | None:
        """The table that stands here, if one does."""
        return self.annotation if isinstance(self.annotation, type) and issubclass(self.annotation, BaseModel) else None

    @property
    def unit(self) -> Unit | None:
        return next((mark for mark in self.marks if isinstance(mark, Unit)), None)

    @property
    def is_secret(self) -> bool:
        return self.annotation is SecretStr

    @property
    def takes_text(self) -> bool:
        """Whether text is meant as it stands, and not as a TOML value."""
        return self.annotation in {str, SecretStr} or get_origin(self.annotation) is Literal or self.unit is not None

    @property
    def choices(self) -> tuple[str, ...]:
        return get_args(self.annotation) if get_origin(self.annotation) is Literal else ()

    @property
    def secret_keys(self) -> list[str]:
        """Keys of this table that may also come from a file."""
        fields = self.model.model_fields if self.model else {}
        return [name for name, field in fields.items() if field.annotation is SecretStr]

    @property
    def keys(self) -> list[str]:
        """Keys that this table may have; none for a table with names of the user's choice."""
        fields = self.model.model_fields if self.model else {}
        return [*fields, *(name + SECRET_FILE_SUFFIX for name in self.secret_keys)]

    def step(self, part: str | int) -> Place | None:
        """The place below this one, or None when the model knows none."""
        if self.model is not None:
            field = self.model.model_fields.get(str(part))
            if field is not None:
                return Place(_without_none(field.annotation), tuple(field.metadata))
            is_secret_file = str(part).removesuffix(SECRET_FILE_SUFFIX) in self.secret_keys
            return Place(str) if is_secret_file else None
        if get_origin(self.annotation) is dict:
            return Place(_without_none(get_args(self.annotation)[1]))
        if get_origin(self.annotation) is list:
            return Place(_without_none(get_args(self.annotation)[0]))
        return Place(Any) if self.annotation is Any else None


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) in {Union, types.UnionType}:
        present = [each for each in get_args(annotation) if each is not types.NoneType]
        return present[0] if len(present) == 1 else annotation
    return annotation


def place_at(root: type[BaseModel], path: Sequence[str | int]) -> Place | None:
    place: Place | None = Place(root)
    for part in path:
        place = place.step(part) if place is not None else None
    return place


def dotted(path: Sequence[str | int]) -> str:
    """``("rewrite", 0, "filter")`` as ``rewrite[0].filter``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
