"""Loads against a small broker: counts, losses, bounds, rates and what goes wrong."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from click.testing import CliRunner

from brookmq.bench.cli import bench
from tests.bench.tiny_broker import TinyBroker


def run(port: int, *arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(bench, [*arguments, "--port", str(port), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return report


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_every_message_of_a_count_is_sent_acknowledged_and_received(qos: int) -> None:
    with TinyBroker() as broker:
        report = run(broker.port, "pairs", "--pairs", "3", "--count", "500", "--qos", str(qos))
    assert report["sent"] == report["received"] == report["expected"] == 1500
    assert report["acknowledged"] == (1500 if qos else 0)
    assert report["lost"] == report["refused"] == report["duplicates"] == 0
    assert report["latency_ms"]["samples"] == 1500
    assert 0 < report["latency_ms"]["p50"] <= report["latency_ms"]["p99"] <= report["latency_ms"]["max"]


@pytest.mark.parametrize("qos", [0, 1])
def test_lost_messages_are_reported(qos: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brookmq.bench.measure.QUIET_S", 0.2)
    with TinyBroker(lose_every=10) as broker:
        report = run(broker.port, "pairs", "--pairs", "2", "--count", "100", "--qos", str(qos), "--outstanding", "1000")
    assert report["sent"] == 200
    assert report["received"] == 180
    assert report["lost"] == 20


def test_a_time_limited_load_measures_a_part_of_it() -> None:
    with TinyBroker() as broker:
        report = run(broker.port, "pairs", "--pairs", "2", "--duration", "0.3", "--warm-up", "0.1", "--qos", "1")
    assert 0 < report["messages"] < report["received"] == report["sent"]
    assert report["lost"] == 0
    assert report["messages_per_s"] == pytest.approx(report["messages"] / report["duration_s"], rel=0.01)
    assert 0 < report["tool_busy"] <= 1.1


def test_a_rate_is_kept() -> None:
    with TinyBroker() as broker:
        report = run(broker.port, "pairs", "--pairs", "2", "--duration", "1", "--warm-up", "0.1", "--rate", "500")
    assert report["messages"] == pytest.approx(500, abs=60)


def test_a_count_at_a_rate_is_sent_exactly_by_everyone_in_turn() -> None:
    with TinyBroker() as broker:
        report = run(broker.port, "pairs", "--pairs", "3", "--count", "50", "--rate", "1000", "--qos", "1")
    assert (report["sent"], report["received"], report["lost"]) == (150, 150, 0)
    assert report["duration_s"] >= 0.14


def test_the_bound_of_messages_under_way_holds() -> None:
    # Nobody forwards, so a publisher stops at its bound instead of filling the broker's memory.
    with TinyBroker(lose_every=1) as broker:
        report = run(broker.port, "pairs", "--pairs", "1", "--duration", "0.2", "--warm-up", "0", "--outstanding", "24")
    assert report["sent"] == 24
    assert report["lost"] == 24


def test_fan_out_expects_a_copy_for_everyone() -> None:
    with TinyBroker() as broker:
        report = run(broker.port, "pub", "--publishers", "2", "--count", "50", "--qos", "1")
        assert (report["sent"], report["acknowledged"], report["lost"]) == (100, 100, 0)
        report = run(broker.port, "conn", "--connections", "20", "--duration", "0.1")
        assert (report["connects"], report["connects_failed"], report["dropped_connections"]) == (20, 0, 0)
        report = run(broker.port, "conn", "--churn", "4", "--duration", "0.2", "--warm-up", "0")
        assert report["connects"] > 20


def test_a_refused_connect_is_one_line_and_exit_code_1() -> None:
    with TinyBroker(connect_code=5) as broker:
        result = CliRunner().invoke(bench, ["pub", "--port", str(broker.port), "--count", "1"])
    assert result.exit_code == 1
    assert "CONNACK with code 0x05" in result.stderr


def test_no_broker_is_one_line_and_exit_code_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    result = CliRunner().invoke(bench, ["pub", "--port", str(port), "--count", "1", "--quiet"])
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "refused" in result.stderr


def test_the_report_is_readable_without_a_terminal() -> None:
    with TinyBroker() as broker:
        result = CliRunner().invoke(bench, ["pairs", "--pairs", "1", "--count", "10", "--port", str(broker.port)])
    assert "messages: 10 sent, 10 received, 0 lost" in result.stdout
    assert "load tool: " in result.stdout


def test_the_self_test_runs_against_a_broker_of_its_own() -> None:
    result = CliRunner().invoke(bench, ["self-test", "--duration", "0.2", "--json"])
    reached = json.loads(result.stdout)
    assert [load["qos"] for load in reached["loads"]] == [0, 1, 2]
    assert all(load["messages_per_s"] > 0 for load in reached["loads"])
    assert all(load["lost"] == 0 for load in reached["loads"])
