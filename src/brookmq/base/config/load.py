"""From sources to a checked ``Config``, and from pydantic's findings to one clear line each."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from brookmq.base.config.model import Config, conflicts
from brookmq.base.config.shape import Place, dotted, place_at
from brookmq.base.config.sources import Merged, merge, read_secrets
from brookmq.base.errors import ConfigError

SHOWN_CHARACTERS_MAX = 60  # of a wrong value in a message


def load(file: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]) -> Config:
    """The checked configuration. Raises the first problem as ``ConfigError``."""
    config, problems = _read(file, environ, overrides)
    if config is None or problems:
        raise problems[0]
    return config


def check(file: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]) -> list[ConfigError]:
    """All problems, for people who would rather not meet them one by one."""
    return _read(file, environ, overrides)[1]


def _read(
    file: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]
) -> tuple[Config | None, list[ConfigError]]:
    try:
        merged = merge(file, environ, overrides)
        read_secrets(merged)
    except ConfigError as error:
        return None, [error]
    try:
        config = Config.model_validate(merged.values)
    except ValidationError as error:
        return None, [_problem(details, merged) for details in error.errors()]
    return config, list(conflicts(config))


def _problem(details: ErrorDetails, merged: Merged) -> ConfigError:
    path = details["loc"]
    origin = merged.origin(path)
    return ConfigError(dotted(path), _sentence(details) + (f" ({origin})" if origin else ""))


def _sentence(details: ErrorDetails) -> str:
    """What is wrong, in the words of the configuration instead of Python's."""
    path, kind, context = details["loc"], details["type"], details.get("ctx", {})
    place = place_at(Config, path) or Place(Any)
    got = "" if place.is_secret or kind == "missing" else f", got {_shown(details['input'])}"
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "missing":
        return "is required"
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"expected one of {', '.join(place.choices)}{got}{_did_you_mean(details['input'], place.choices)}"
    if kind == "string_pattern_mismatch":
        return f"does not look right{got}; it has to match {context['pattern']}"
    whole = {name: int(value) for name, value in context.items() if isinstance(value, float) and value.is_integer()}
    unit = f" {place.unit.name}" if place.unit else ""
    of_unit = f" of{unit}" if unit else ""
    return _EXPECTED.get(kind, details["msg"]).format(unit=unit, of_unit=of_unit, **(context | whole)) + got


_EXPECTED = {
    "bool_type": "expected true or false",
    "dict_type": "expected a table",
    "float_type": "expected a number{of_unit}",
    "greater_than": "has to be more than {gt}{unit}",
    "greater_than_equal": "has to be at least {ge}{unit}",
    "int_from_float": "expected a whole number{of_unit}",
    "int_type": "expected a whole number{of_unit}",
    "less_than": "has to be less than {lt}{unit}",
    "less_than_equal": "has to be at most {le}{unit}",
    "list_type": "expected a list",
    "model_type": "expected a table",
    "string_too_long": "has to have at most {max_length} characters",
    "string_too_short": "must not be empty",
    "string_type": "expected text",
}


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[: SHOWN_CHARACTERS_MAX - 1] + "…"


def _unknown_key(path: tuple[str | int, ...]) -> str:
    table = place_at(Config, path[:-1])
    keys = table.keys if table else []
    suggestion = _did_you_mean(path[-1], keys)
    return f"unknown key{suggestion}" if suggestion else f"unknown key; known here: {', '.join(keys)}"


def _did_you_mean(value: object, known: list[str] | tuple[str, ...]) -> str:
    close = difflib.get_close_matches(str(value), known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
