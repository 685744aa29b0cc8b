"""The example file and the tables of the guide say what the model says."""

from __future__ import annotations

from pathlib import Path

import pytest

from brookmq.base.config import Config, check, load
from brookmq.base.config.example import example
from brookmq.base.config.guide import fill, keys, limits_table
from brookmq.base.config.section import limit_of
from brookmq.base.errors import CallerError

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "configuration.md"


def test_the_example_is_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "example.toml"
    file.write_text(example())
    assert load(file, {}, {}) == Config()


def test_the_samples_in_it_are_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("server.crt", "server.key", "server.password", "clients.crt", "devices.crt", "devices.key"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    lines = example().splitlines()
    samples = [line[1:] if line.startswith("#") and line[1:2] not in {" ", ""} else line for line in lines]
    file = tmp_path / "samples.toml"
    file.write_text("\n".join(samples))
    assert check(file, {}, {}) == []
    config = load(file, {}, {})
    assert set(config.listeners) == {"default", "secure", "web", "local"}
    assert config.rewrite
    assert config.auto_subscribe
    assert config.shared.groups
    assert config.plugins.settings


def test_every_key_has_its_meaning_and_every_limit_its_unit_and_effect() -> None:
    for key in keys():
        assert key.field.description, key.path
        limit = limit_of(key.field)
        if limit is not None:
            assert limit.happens, key.path
            assert key.kind, key.path


def test_every_key_that_ends_in_max_is_a_limit() -> None:
    assert [key.path for key in keys() if key.path.endswith("_max") and limit_of(key.field) is None] == []


def test_the_example_has_every_key_of_a_plain_section() -> None:
    text = example()
    plain = [key.path for key in keys() if "NAME" not in key.path and "[]" not in key.path]
    missing = [path for path in plain if f"\n{path.rpartition('.')[2]} = " not in text]
    assert missing == ["plugins.settings"]  # names of the user's choice: a sample


def test_the_guide_shows_the_model_as_it_is() -> None:
    text = GUIDE.read_text()
    assert limits_table() in text, "the guide is out of date: run `make docs`"
    assert fill(text) == text, "the guide is out of date: run `make docs`"


def test_a_guide_without_markers_is_refused() -> None:
    with pytest.raises(CallerError, match="no markers for limits"):
        fill("nothing")
