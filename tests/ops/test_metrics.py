"""The text format of Prometheus: every family complete, names and values well-formed."""

from __future__ import annotations

import re
from dataclasses import replace

import httpx
import pytest

from brookmq.base.counters import Counters
from brookmq.ops import metrics
from brookmq.ops.view import NodeInfo
from tests.ops.memory_node import MemoryNode

SAMPLE = re.compile(r'^([a-z_][a-z0-9_]*)(\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*\})? (-?[0-9.e+-]+|NaN|[+-]Inf)$')


def parsed(text: str) -> dict[str, tuple[str, str, str]]:
    """Name → (type, labels, value), checking the order HELP, TYPE, sample on the way."""
    assert text.endswith("\n")
    lines = text.splitlines()
    assert len(lines) % 3 == 0
    families = {}
    for help_line, type_line, sample_line in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        sample = SAMPLE.match(sample_line)
        assert sample, sample_line
        name = sample[1]
        assert re.match(rf"^# HELP {name} .+$", help_line)
        kind = type_line.removeprefix(f"# TYPE {name} ")
        assert kind in ("counter", "gauge")
        assert name.startswith("brookmq_")
        assert name not in families
        families[name] = (kind, sample[2] or "", sample[3])
    return families


def test_every_counter_of_the_node_becomes_a_family(memory_node: MemoryNode) -> None:
    memory_node.counted = Counters().as_dict()
    memory_node.counted["bytes_sent"] = 123456789012345
    families = parsed(metrics.render(memory_node))
    assert families["brookmq_bytes_sent_total"] == ("counter", "", "123456789012345")
    assert {f"brookmq_{name}_total" for name in memory_node.counted} <= set(families)


def test_gauges_have_their_units_in_full(memory_node: MemoryNode) -> None:
    memory_node.measured = {"loop_lag_s": 0.0125, "resident_memory_bytes": 1e9, "connections": 3}
    families = parsed(metrics.render(memory_node))
    assert families["brookmq_loop_lag_seconds"] == ("gauge", "", "0.0125")
    assert families["brookmq_connections"] == ("gauge", "", "3")
    assert float(families["brookmq_resident_memory_bytes"][2]) == 1e9


@pytest.mark.parametrize(("value", "text"), [(float("nan"), "NaN"), (float("inf"), "+Inf"), (float("-inf"), "-Inf")])
def test_values_that_are_no_numbers(memory_node: MemoryNode, value: float, text: str) -> None:
    memory_node.measured = {"odd": value}
    assert parsed(metrics.render(memory_node))["brookmq_odd"][2] == text


def test_labels_are_escaped(memory_node: MemoryNode, monkeypatch: pytest.MonkeyPatch) -> None:
    info = memory_node.info()

    def strange() -> NodeInfo:
        return replace(info, name='a"b\\c\nd')

    monkeypatch.setattr(memory_node, "info", strange)
    labels = parsed(metrics.render(memory_node))["brookmq_build_info"][1]
    assert r'node="a\"b\\c\nd"' in labels


def test_ready_and_alarms_are_there_too(memory_node: MemoryNode) -> None:
    memory_node.not_ready = "starting"
    families = parsed(metrics.render(memory_node))
    assert families["brookmq_ready"][2] == "0"
    assert families["brookmq_alarms"][2] == "0"


def test_the_page(api: httpx.Client) -> None:
    response = api.get("/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "brookmq_build_info" in parsed(response.text)
