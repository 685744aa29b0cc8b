"""For each chapter a node with one rule switched off, and a test of this suite that fails on it."""

from __future__ import annotations

import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.fixtures import SHARED_CONFIG
from tests.spec import broken
from tests.spec.patched import ROOT, start_patched

RULES = sorted(module.name for module in pkgutil.iter_modules(broken.__path__))
HERE = Path(__file__).parent


def named_test(rule: str) -> str:
    """The test that the module names; read from its text, since importing it would break this process."""
    found = re.search(r'^FAILS = "(.*)"$', Path(broken.__path__[0], f"{rule}.py").read_text(), re.MULTILINE)
    assert found is not None, rule
    return found[1]


@pytest.mark.parametrize("rule", RULES)
def test_a_broken_rule_is_noticed(rule: str, tmp_path: Path) -> None:
    if "BROOKMQ_TEST_BROKER" in os.environ:
        pytest.skip("starts nodes of its own")
    node = start_patched(tmp_path, f"tests.spec.broken.{rule}", SHARED_CONFIG + "[http]\nenable = false\n")
    try:
        web = node.websocket
        assert web is not None
        environment = {
            **os.environ,
            "BROOKMQ_TEST_BROKER": f"{node.mqtt[0]}:{node.mqtt[1]}",
            "BROOKMQ_TEST_BROKER_WS": f"{web[0]}:{web[1]}",
            "BROOKMQ_TEST_DEADLINE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # one test needs none of them, and they take their time
        }
        environment.pop("PYTEST_XDIST_WORKER", None)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{HERE}/{named_test(rule)}"]
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    finally:
        node.kill()
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stdout + ran.stderr
    assert f"FAILED tests/spec/{named_test(rule)}" in ran.stdout, ran.stdout + ran.stderr


def test_every_chapter_has_a_broken_node() -> None:
    several_chapters = {"test_3_16_refusals.py", "test_4_model.py", "test_4_model_shared.py"}
    files = {path.name for path in HERE.glob("test_[0-9]*.py")} - several_chapters
    assert {named_test(rule).partition("::")[0] for rule in RULES} == files
