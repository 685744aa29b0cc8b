"""The choice between compiled and plain modules."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from brookmq import _pure


def run_python(code: str, pure: str) -> str:
    environment = {**os.environ, "BROOKMQ_PURE": pure}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_hot_modules_are_those_with_types_for_cython() -> None:
    assert "brookmq.base.message" in _pure.hot_modules()
    assert "brookmq.base.errors" not in _pure.hot_modules()


def test_pure_loads_the_source_of_every_hot_module() -> None:
    code = """
import importlib
from brookmq import _pure
for name in _pure.hot_modules():
    try:
        print(importlib.import_module(name).__file__)
    except ModuleNotFoundError as error:
        assert error.name == name, error
"""
    files = run_python(code, "1").splitlines()
    assert files
    assert all(file.endswith(".py") for file in files)


@pytest.mark.parametrize("value", ["", "0"])
def test_empty_and_zero_do_not_ask_for_plain_python(value: str) -> None:
    assert run_python("from brookmq import _pure; print(_pure.asked_for())", value) == "False"


def test_form_names_plain_python() -> None:
    assert run_python("from brookmq import _pure; print(_pure.form())", "1") == "plain Python"


def test_form_names_the_modules_left_plain_in_a_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pure, "hot_modules", lambda: ["brookmq.a", "brookmq.b"])
    monkeypatch.setattr(_pure, "is_compiled", lambda name: name == "brookmq.a")
    assert _pure.form() == "compiled, but plain Python: brookmq.b"


def test_a_module_only_in_compiled_form_is_not_found_when_pure() -> None:
    finder = _pure.PureFinder()
    with pytest.raises(ModuleNotFoundError, match=r"brookmq\.nothing"):
        finder.find_spec("brookmq.nothing", ["/nonexistent"])
    assert finder.find_spec("json", None) is None
