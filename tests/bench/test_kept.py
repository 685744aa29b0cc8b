"""Sessions that outlive their connections: made, away, back; against brokers that keep them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from bench.brokers import BROKERS
from click.testing import CliRunner

from brookmq.bench import packets, scenarios
from brookmq.bench.cli import bench
from brookmq.bench.kept import Names, filters_of
from brookmq.bench.packets import NumberedTopic
from tests.bench.tiny_broker import TinyBroker


def run(port: int, *arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(bench, [*arguments, "--port", str(port), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return report


@pytest.fixture(scope="module", params=["brookmq", "mosquitto"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    with BROKERS[request.param].running() as running:
        yield running.port


@pytest.fixture(autouse=True)
def short_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brookmq.bench.kept.QUIET_S", 0.3)


def test_every_numbered_topic_has_the_filter_of_its_number() -> None:
    filters = [name for number in range(4) for name in filters_of("a/%f/b", number, 25, 4)]
    topic = scenarios.numbered_topic("a/%n/b", 100)
    block = packets.publish_block(topic, 0, 4, 0, 100)
    block.fill(100, 0)
    size = block.packet_length
    topics = [bytes(block.data[at + 4 : at + size]) for at in range(0, 100 * size, size)]
    assert sorted(topics) == sorted(filters)
    assert topics != filters  # in no order that a broker could profit from


def test_a_stride_that_would_leave_numbers_out_is_not_used() -> None:
    topic = scenarios.numbered_topic("%n", 2 * scenarios.NEW_TOPIC_STRIDE)
    assert isinstance(topic, NumberedTopic)
    assert topic.stride == 1


def test_names_are_a_range() -> None:
    assert list(Names("s-%i", 3, 7)) == ["s-7", "s-8", "s-9"]
    assert filters_of("t/%i", 7, 5, 10) == [b"t/7"]


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize("qos", ["1", "2"])
def test_what_was_published_while_they_were_away_is_received_on_their_return(port: int, version: str, qos: str) -> None:
    who = ("--sessions", "70", "--client-id", f"away-{version}-{qos}-%i", "--mqtt-version", version)
    topic = f"away/{version}/{qos}"
    made = run(port, "sessions", *who, "--topic", f"{topic}/%f", "--qos", qos)
    assert (made["connects"], made["connects_failed"], made["clients"]) == (70, 0, 70)
    sent = run(port, "pub", "--publishers", "5", "--topic", f"{topic}/%n", "--topics", "70", "--count", "140",
               "--qos", qos, "--mqtt-version", version)  # fmt: skip
    assert (sent["sent"], sent["acknowledged"]) == (700, 700)
    back = run(port, "back", *who, "--expect", "700")
    assert (back["received"], back["expected"], back["lost"]) == (700, 700, 0)
    assert back["sessions_present"] == back["clients"] == 70
    again = run(port, "back", *who, "--discard")
    assert (again["received"], again["sessions_present"]) == (0, 70)
    assert run(port, "back", *who, "--discard")["sessions_present"] == 0


def test_messages_that_do_not_come_are_lost_and_absent_sessions_are_told(port: int) -> None:
    report = run(port, "back", "--sessions", "3", "--client-id", "never-%i", "--expect", "10", "--discard")
    assert (report["received"], report["lost"], report["sessions_present"]) == (0, 10, 0)
    assert "3 sessions were not there any more" in report["notes"]


def test_a_wave_tells_what_unrelated_traffic_noticed(port: int) -> None:
    who = ("--sessions", "200", "--first", "1000", "--client-id", "wave-%i")
    run(port, "sessions", *who, "--topic", "wave/all")
    run(port, "pub", "--publishers", "1", "--topic", "wave/all", "--count", "5", "--qos", "1")
    report = run(port, "back", *who, "--beside", "500", "--pairs", "4", "--expect", "1000", "--duration", "0.5",
                 "--warm-up", "0.1", "--discard")  # fmt: skip
    assert (report["connects"], report["received"], report["lost"]) == (200, 1000, 0)
    assert report["quiet_latency_ms"]["samples"] > 100
    assert report["latency_ms"]["samples"] > 0
    assert report["notes"][0].endswith("messages of unrelated traffic, none lost")


@pytest.mark.parametrize("qos", ["1", "2"])
def test_a_load_with_kept_sessions_leaves_none_behind(port: int, qos: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brookmq.bench.fleet.os.getpid", lambda: 0xBEEF)  # makes the client ids known
    report = run(port, "pairs", "--pairs", "3", "--count", "300", "--qos", qos, "--session")
    assert (report["received"], report["lost"]) == (900, 0)
    left = run(port, "back", "--sessions", "6", "--first", "1", "--client-id", "bench-beef-%i", "--discard")
    assert left["sessions_present"] == 0


def test_a_connection_that_is_reset_is_tried_again() -> None:
    with TinyBroker(resets=3) as broker:
        report = run(broker.port, "back", "--sessions", "2")
    assert (report["connects"], report["connects_failed"], report["clients"]) == (2, 3, 2)
    assert any(note.startswith("3 connects were tried again") for note in report["notes"])


def test_a_session_that_is_always_reset_is_given_up() -> None:
    with TinyBroker(resets=100) as broker:
        result = CliRunner().invoke(bench, ["back", "--port", str(broker.port), "--sessions", "1", "--quiet"])
    assert result.exit_code == 1
    assert "1 sessions did not come back" in result.stderr


def test_a_refused_session_is_one_line_and_exit_code_1() -> None:
    for command in ("sessions", "back"):
        with TinyBroker(connect_code=5) as broker:
            result = CliRunner().invoke(bench, [command, "--port", str(broker.port), "--sessions", "2", "--quiet"])
        assert result.exit_code == 1
        assert result.stderr.count("\n") == 1
        assert "CONNACK with code 0x05" in result.stderr
