"""Where values come from: the file, then the environment, then the command line; the later one wins.

An environment variable is ``BROOKMQ_`` and the key's path in capitals with ``__`` between its parts:
``BROOKMQ_MQTT__PACKET_SIZE_MAX=2MiB``. Lists and tables are written as in TOML or JSON. A secret ``x`` may stand in a
file of its own, named by ``x_file``.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from brookmq.base.config.model import Config
from brookmq.base.config.shape import SECRET_FILE_SUFFIX, Place, dotted, place_at
from brookmq.base.errors import ConfigError

PREFIX = "BROOKMQ_"


@dataclass
class Merged:
    """All values in one tree, and for each path that something set, what it was."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def put(self, path: list[str], value: object, origin: str) -> None:
        table = self.values
        for depth, part in enumerate(path[:-1]):
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise ConfigError(dotted(path[: depth + 1]), f"is no table, so {origin} cannot set {dotted(path)}")
        table[path[-1]] = value
        self.origins[dotted(path)] = origin

    def origin(self, path: tuple[str | int, ...]) -> str:
        """What set the value at the path, or the table that it stands in, or something in it."""
        for length in range(len(path), 0, -1):
            found = self.origins.get(dotted(path[:length]))
            if found is not None:
                return found
        below = dotted(path) + "."
        return next((origin for name, origin in self.origins.items() if name.startswith(below)), "")


def merge(file: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]) -> Merged:
    """``overrides`` are values by dotted path (``node.name``); a table there replaces the whole table."""
    merged = Merged()
    if file is not None:
        merged.values = read_file(file)
        merged.origins = dict.fromkeys(merged.values, f"in {file}")
    for path, value, name in from_environment(environ):
        merged.put(path, value, f"from {name}")
    for name, value in overrides.items():
        merged.put(name.split("."), value, "from the command line")
    return merged


def read_file(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            return tomllib.load(stream)
    except FileNotFoundError:
        raise ConfigError("", f"no such configuration file: {file}; `brookmq conf example` prints one") from None
    except OSError as error:
        raise ConfigError("", f"cannot read {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError("", f"{file} is not TOML: {error}") from None


def from_environment(environ: Mapping[str, str]) -> Iterator[tuple[list[str], object, str]]:
    """Path, value and name of each variable that is about the configuration.

    A variable of one word that is no section (``BROOKMQ_PURE``) is somebody else's.
    """
    for name in sorted(environ):
        path = name.removeprefix(PREFIX).lower().split("__")
        if not name.startswith(PREFIX) or (len(path) == 1 and path[0] not in Config.model_fields):
            continue
        if not all(path):
            raise ConfigError(dotted(path), f"the variable {name} has an empty part")
        place = place_at(Config, path)
        yield path, environ[name] if place is None or place.takes_text else _value(environ[name]), name


def _value(text: str) -> object:
    """A number, truth value, list or table out of text; text that is none of them stays what it is."""
    if text.strip().lower() in {"true", "false"}:
        return text.strip().lower() == "true"
    if "\n" not in text:
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            pass
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def read_secrets(merged: Merged) -> None:
    """Puts the content of each ``x_file`` in the place of ``x``."""
    _read_secrets(merged.values, Place(Config), ())


def _read_secrets(value: object, place: Place, path: tuple[str | int, ...]) -> None:
    if isinstance(value, dict):
        for name in place.secret_keys:
            file = value.pop(name + SECRET_FILE_SUFFIX, None)
            if file is None:
                continue
            where = dotted((*path, name + SECRET_FILE_SUFFIX))
            if name in value:
                raise ConfigError(where, f"{name} is set too; one of them is enough")
            value[name] = _secret(where, file)
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, below in parts:
        next_place = place.step(part)
        if next_place is not None:
            _read_secrets(below, next_place, (*path, part))


def _secret(where: str, file: object) -> str:
    if not isinstance(file, str):
        raise ConfigError(where, f"expected the name of a file, got {file!r}")
    try:
        return Path(file).read_text().removesuffix("\n")
    except OSError as error:
        raise ConfigError(where, f"cannot read {file}: {error.strerror}") from None
