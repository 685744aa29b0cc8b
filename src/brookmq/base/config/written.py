"""A configuration as a file: what differs from the defaults, and nothing else.

Secrets are not written: a backup is copied to places where passwords have no business. A line says where one was.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from pydantic import SecretStr

from brookmq.base.config.model import Config


def written(config: Config) -> str:
    """TOML that ``load`` reads back to the same configuration, but for its secrets."""
    return "\n".join(_table("", config.model_dump(exclude_defaults=True))).strip("\n") + "\n"


def _table(path: str, values: dict[str, object]) -> Iterator[str]:
    """Its own keys first: in TOML they must stand before the tables below."""
    below: list[tuple[str, object]] = []
    lines: list[str] = []
    for name, value in values.items():
        if isinstance(value, dict) or _is_tables(value):
            below.append((name, value))
        elif isinstance(value, SecretStr):
            lines.append(f"# {_key(name)} was set, and is a secret")
        elif value is not None:
            lines.append(f"{_key(name)} = {_value(value)}")
    if lines:
        yield from [f"[{path}]"] * bool(path)
        yield from lines
        yield ""
    for name, value in below:
        inner = f"{path}.{_key(name)}" if path else _key(name)
        if isinstance(value, dict):
            if not value:
                yield from (f"[{inner}]", "")
            yield from _table(inner, value)
        elif isinstance(value, list | tuple):
            for each in value:
                yield f"[[{inner}]]"
                yield from (f"{_key(key)} = {_value(item)}" for key, item in each.items() if item is not None)
                yield ""


def _is_tables(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(each, dict) for each in value)


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(each) for each in value)}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, int | float):
        return str(value)
    return json.dumps(str(value), ensure_ascii=False)
