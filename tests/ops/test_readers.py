"""Declared readers over HTTP, in the metrics, and with ``brookmq ctl readers``."""

from __future__ import annotations

import json
from http import HTTPStatus

import httpx
import pytest
from click.testing import CliRunner, Result

from brookmq.ops.ctl import ctl
from tests.ops.memory_node import MemoryNode

URL = "/api/v1/readers"


def run(address: str, *arguments: str) -> Result:
    return CliRunner().invoke(ctl, ["readers", *arguments], env={"BROOKMQ_URL": f"http://{address}"})


def test_a_reader_is_declared_seen_and_dropped(api: httpx.Client) -> None:
    assert api.get(URL).json() == []
    answer = api.put(f"{URL}/my%2Fquery", json={"position": {"0": 5, "1": 20}, "filter": ["a/#"], "lost": 3})
    expected = {
        "name": "my/query",
        "journal": "0a1b",
        "position": {"0": 5, "1": 20},
        "filter": ["a/#"],
        "seen_at": 1000.0,
        "lag": 15,
        "lost": 3,
        "alive": True,
    }
    assert answer.json() == expected
    assert api.get(f"{URL}/my%2Fquery").json() == expected
    assert api.get(URL).json() == [expected]
    assert api.delete(f"{URL}/my%2Fquery").status_code == HTTPStatus.NO_CONTENT
    for answer in (api.delete(f"{URL}/my%2Fquery"), api.get(f"{URL}/my%2Fquery")):
        assert answer.status_code == HTTPStatus.NOT_FOUND
        assert "'my/query'" in answer.json()["message"]


@pytest.mark.parametrize(
    "body",
    [{}, {"position": {"0": -1}}, {"position": {"2": 1}}, {"position": {}, "lost": -1}, {"position": {}, "other": 1}],
)
def test_what_makes_no_sense_is_refused(api: httpx.Client, body: dict[str, object]) -> None:
    assert api.put(f"{URL}/r", json=body).status_code == HTTPStatus.BAD_REQUEST
    assert api.put(f"{URL}/{'x' * 256}", json={"position": {}}).status_code == HTTPStatus.BAD_REQUEST


def test_what_a_reader_has_lost_is_added(api: httpx.Client) -> None:
    lost = {"ranges": {"0": [[3, 5], [9, 10]], "1": [[0, 4]]}}
    assert api.post(f"{URL}/r/lost", json=lost).status_code == HTTPStatus.NOT_FOUND
    api.put(f"{URL}/r", json={"position": {"0": 5}})
    assert api.post(f"{URL}/r/lost", json=lost).json()["lost"] == 7
    for bad in ({}, {"ranges": {"2": [[0, 1]]}}, {"ranges": {"0": [[-1, 1]]}}, {"ranges": {"0": [[1]]}}):
        assert api.post(f"{URL}/r/lost", json=bad).status_code == HTTPStatus.BAD_REQUEST


def test_lag_is_a_metric(api: httpx.Client) -> None:
    assert "reader_lag" not in api.get("/metrics").text
    api.put(f"{URL}/a", json={"position": {"0": 5}})
    api.put(f'{URL}/b"', json={"position": {"0": 20}, "lost": 7})
    text = api.get("/metrics").text
    assert text.count("# TYPE brookmq_reader_lag gauge\n") == 1
    assert 'brookmq_reader_lag{reader="a"} 15\n' in text
    assert 'brookmq_reader_lost{reader="b\\""} 7\n' in text


def test_commands(address: str, api: httpx.Client, memory_node: MemoryNode) -> None:
    assert json.loads(run(address, "list", "--json").output) == []
    api.put(f"{URL}/a%2Fb", json={"position": {"0": 5}, "filter": ["x/#"]})
    listed = run(address, "list").output.splitlines()
    assert listed[0].split("\t")[:3] == ["reader", "lag", "lost"]
    assert listed[1].split("\t")[:4] == ["a/b", "15", "0", "yes"]
    shown = run(address, "show", "a/b")
    assert "lag" in shown.output
    assert "0: 5" in shown.output
    assert json.loads(run(address, "show", "a/b", "--json").output)["lag"] == 15
    assert run(address, "drop", "a/b").output == "dropped\n"
    assert not memory_node.journal.declared
    gone = run(address, "drop", "a/b")
    assert gone.exit_code == 1
    assert "no reader 'a/b'" in gone.output
