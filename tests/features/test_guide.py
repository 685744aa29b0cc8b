"""The pages themselves: links lead somewhere, configuration in them is accepted, the examples in Python run."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from brookmq.base.config import Config
from tests.harness.node import Broker

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them: lower case, dashes for spaces, no punctuation."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.exists(), f"{target}: no such file"
        if anchor:
            assert anchor in _anchors(found), f"{target}: no such heading"


@pytest.mark.parametrize("page", GUIDE, ids=_name)
def test_every_page_is_in_the_index(page: Path) -> None:
    index = (ROOT / "docs" / "guide" / "README.md").read_text()
    assert page.name == "README.md" or f"]({page.name})" in index


@pytest.mark.parametrize("page", [page for page in GUIDE if page.name != "plugins.md"], ids=_name)
def test_configuration_in_the_guide_is_accepted(page: Path) -> None:
    for block in _blocks(page, "toml"):
        try:
            Config.model_validate(tomllib.loads(block.replace("password_file", "password")))  # read from it elsewhere
        except ValidationError as error:
            pytest.fail(f"{block}\n{error}")


def test_the_first_python_example_runs(node: Broker) -> None:
    (example,) = _blocks(ROOT / "docs" / "guide" / "getting-started.md", "python")
    host, port = node.mqtt
    assert '"127.0.0.1", 1883' in example
    script = example.replace('"127.0.0.1", 1883', f'"{host}", {port}')
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout, done.stderr) == ("room/1/temperature 20.5\n", "")
