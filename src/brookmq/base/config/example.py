"""``brookmq conf example``: a TOML file with every key, its default, its unit and what happens at its limit.

The file is made of the models, so it cannot be out of date, and loading it unchanged gives the defaults.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from brookmq.base.config.model import Config
from brookmq.base.config.section import limit_of
from brookmq.base.config.shape import Place

WIDTH = 100

HEADER = """\
# Configuration of a BrookMQ node: `brookmq start --config FILE`, checked by `brookmq conf check FILE`.
#
# Every key with its default; a file needs only what differs. Each key can also be set in the environment:
# BROOKMQ_MQTT__PACKET_SIZE_MAX=2MiB. A password can stand in a file: key_password_file = "FILE".
# Durations: "500ms", "30s", "5m", "1h", "7d" or seconds. Sizes: "64KiB", "1MiB", "1GiB" or bytes.
# Relative paths start at the working folder. Lines with # and no space are samples.
"""


def example() -> str:
    """The whole file."""
    return "\n".join([HEADER, *_sections()])


def _sections() -> Iterator[str]:
    defaults = Config()
    for name, field in Config.model_fields.items():
        value = getattr(defaults, name)
        if isinstance(value, BaseModel):
            yield _table(name, value)
        elif name == "listeners":
            yield from (_table(f"{name}.{key}", listener) for key, listener in value.items())
            yield _commented(name, field)
        else:
            yield _commented(name, field)


def _table(path: str, section: BaseModel) -> str:
    """A section with all its keys; those without a plain default follow as a comment."""
    lines = [f"[{path}]"]
    later = []
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if value is None:
            continue  # listeners.NAME.tls, shown in the examples of listeners
        if isinstance(value, dict):
            later.append(_commented(f"{path}.{name}", field))
            continue
        place = Place(field.annotation, tuple(field.metadata))
        lines += [*_comment(describe(place, field)), f"{name} = {toml_value(value, place)}"]
    return "\n".join([*lines, "", *later])


def describe(place: Place, field: FieldInfo) -> str:
    """Meaning, choices and bounds of a key, and what happens at its limit."""
    parts = [field.description or ""]
    if place.choices:
        parts.append(f"One of: {', '.join(place.choices)}.")
    if bounds(place):
        parts.append(f"Range: {bounds(place)}.")
    limit = limit_of(field)
    if limit is not None:
        parts.append(f"At the limit: {limit.happens}")
    return " ".join(parts)


def bounds(place: Place) -> str:
    """``4KiB to 1GiB``, as far as the model bounds the key."""
    words = {"ge": "{}", "gt": "more than {}", "le": "to {}"}
    found = {word: getattr(mark, word) for mark in place.marks for word in words if hasattr(mark, word)}
    text = " ".join(words[word].format(number(found[word], place)) for word in words if word in found)
    return f"at least {text}" if set(found) == {"ge"} else text.replace(" to ", ", up to ") if "gt" in found else text


def number(value: float, place: Place) -> str:
    """With its unit where that reads better than the plain number."""
    text = place.unit.render(value) if place.unit else ""
    return text if text and not text.removesuffix("B").isdecimal() else f"{value:_}"


def toml_value(value: object, place: Place) -> str:
    """A default as one would write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        text = number(value, place)
        return text if text == f"{value:_}" else f'"{text}"'
    if isinstance(value, SecretStr):
        return '""'
    return json.dumps(value, ensure_ascii=False)


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, WIDTH)]


def _commented(path: str, field: FieldInfo) -> str:
    """A table or list that is empty by default: its meaning, and a sample behind ``#`` signs."""
    lines = _comment(field.description or "")
    for sample in field.examples or []:
        lines += [f"#{line}" for line in _sample(path, sample)]
    return "\n".join([*lines, ""])


def _sample(path: str, sample: object) -> Iterator[str]:
    if isinstance(sample, list):
        for entry in sample:
            yield f"[[{path}]]"
            yield from _sample_keys(entry)
    elif isinstance(sample, dict):
        for name, table in sample.items():
            yield f"[{path}.{name if name.isidentifier() else json.dumps(name)}]"
            yield from _sample_keys(table)
            for key, below in table.items():
                if isinstance(below, dict):
                    yield from _sample_table(f"{path}.{name}.{key}", below)


def _sample_table(path: str, table: dict[str, object]) -> Iterator[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    if plain:
        yield f"[{path}]"
        yield from _sample_keys(plain)
    for key, below in table.items():
        if isinstance(below, dict):
            yield from _sample_table(f"{path}.{key if key.isidentifier() else json.dumps(key)}", below)


def _sample_keys(table: dict[str, object]) -> Iterator[str]:
    for key, value in table.items():
        if not isinstance(value, dict):
            yield f"{key} = {json.dumps(value, ensure_ascii=False)}"
