"""The tutorial's notebook, executed against a real node: its chart is made, and its figures are what was published."""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.harness.node import Node
from tests.harness.raw import Client
from tests.harness.wire import Property

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial"
NOTEBOOK = TUTORIAL / "first-chart.ipynb"
CELL_S = 180
PNG = b"\x89PNG\r\n\x1a\n"
READINGS = 6 * 144 + 1


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """With the configuration that the tutorial tells to use."""
    found = Node(tmp_path, (TUTORIAL / "node.toml").read_text())
    yield found
    found.stop()


KEPT = {"clean": False, "props": [(Property.SESSION_EXPIRY, 3600)]}


def subscribe(node: Node) -> None:
    """A session of the test's own gets what rooms publish, while nobody looks."""
    with Client(node.mqtt) as client:
        client.connect("listener", **KEPT)
        client.subscribe("rooms/#", qos=1)


def published(node: Node) -> dict[str, list[float]]:
    """What has come for it: the readings of each room in their order."""
    found: dict[str, list[float]] = defaultdict(list)
    with Client(node.mqtt) as client:
        client.connect("listener", **KEPT)
        for _ in range(READINGS):
            message = client.take()
            found[message.topic.decode().split("/")[1]].append(json.loads(message.payload)["celsius"])
        client.expect_nothing()
    return found


def output(notebook: Any, cell_id: str) -> Any:
    (found,) = [cell for cell in notebook.cells if cell["id"] == cell_id]
    return found["outputs"]


def test_the_notebook_makes_its_chart_of_what_was_published(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROOKMQ_URL", f"http://127.0.0.1:{node.http[1]}")
    monkeypatch.setenv("MASTER", "local[2]")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "matplotlib"))
    subscribe(node)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=CELL_S, resources={"metadata": {"path": str(tmp_path)}}).execute()

    readings = published(node)
    assert readings["kitchen"].pop() == 41.5  # behind the figures
    lines = output(notebook, "figures")[-1]["data"]["text/plain"].splitlines()
    assert lines[0].split() == ["room", "messages", "coldest", "hottest", "mean"]
    shown = {room: tuple(map(float, rest)) for _, room, *rest in (line.split() for line in lines[1:])}
    assert shown == {
        room: (144, min(values), max(values), pytest.approx(fmean(values), abs=0.001))
        for room, values in readings.items()
    }
    chart = base64.b64decode(output(notebook, "chart")[-1]["data"]["image/png"])
    assert chart.startswith(PNG)
    assert len(chart) > 10_000
    now = output(notebook, "stream")[-1]["data"]["text/plain"]
    assert {line.split()[1]: float(line.split()[2]) for line in now.splitlines()[1:]} == {
        room: values[-1] for room, values in readings.items()
    }
    hot = output(notebook, "oven")[-1]["data"]["text/plain"]
    assert hot.split()[-2:] == ["kitchen", "41.5"]


def test_the_notebook_is_kept_without_outputs_and_without_traces_of_a_machine() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in notebook.cells)
    text = NOTEBOOK.read_text()
    assert not re.search(r"/(home|root|Users|tmp|work)/", text)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


def test_links_of_the_notebook_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", NOTEBOOK.read_text())
    assert len(links) >= 4
    for target in links:
        assert (TUTORIAL / target).exists(), target
