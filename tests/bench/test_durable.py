"""Scenarios of several steps: their figures become verdicts, and their steps work with real brokers and restarts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from bench.brokers import BROKERS, BrokerError, Running
from bench.catalogue import KEPT_SCENARIOS, Kind
from bench.results import Results, Series
from bench.runner import Plan, run
from bench.stage import Stage, bytes_on_disk, metric
from bench.tables import tables

from bench import durable


def rows_of(key: str, theirs: dict[str, float] | None, ours: dict[str, float]) -> list[tuple[str, ...]]:
    series = Series("2026-01-01", "python -m bench", pinned=False, versions={}, load_before=0.1)
    if theirs is not None:
        series.add("mosquitto", {"figures": theirs})
    series.add("brookmq", {"figures": ours})
    made = Results({}, {key: series})
    [table] = tables(made)
    return list(table.rows)


def test_a_figure_has_to_be_reached_alone_and_against_the_other_broker() -> None:
    theirs = {"messages_per_s": 70_000.0, "cpu_us": 10.0}
    rows = rows_of("store-away", theirs, {"messages_per_s": 60_000.0, "cpu_us": 5.1})
    assert [row[1:] for row in rows[:4]] == [
        ("messages/s", "70,000", "60,000", "≥ 50,000", "ok"),
        ("messages/s, against Mosquitto", "—", "0.86", "≥ 1", "short"),
        ("CPU s/million", "10.00", "5.10", "", ""),
        ("CPU, against Mosquitto", "—", "0.51", "≤ 0.5", "short"),
    ]
    rows = rows_of("store-away", theirs, {"messages_per_s": 49_000.0, "cpu_us": 5.0})
    assert [row[-1] for row in rows[:4]] == ["short", "short", "", "ok"]


def test_the_durability_of_both_stands_beside_the_figures() -> None:
    rows = rows_of("store-away", None, {"messages_per_s": 1.0})
    assert ("acknowledged when", "in memory", "synced to disk") in [row[1:4] for row in rows]


def test_without_the_other_broker_there_is_no_relative_verdict() -> None:
    rows = rows_of("store-away", None, {"messages_per_s": 60_000.0, "cpu_us": 1.0})
    assert [row[-2:] for row in rows[:4]] == [("≥ 50,000", "ok"), ("≥ 1", ""), ("", ""), ("≤ 0.5", "")]


@pytest.mark.parametrize(("extra", "expected"), [(2.5, "ok"), (2.51, "short")])
def test_a_bound_is_met_at_its_value(extra: float, expected: str) -> None:
    assert rows_of("store-kept-1", None, {"extra_us": extra})[-1][-2:] == ("≤ 2.5", expected)


def test_all_figures_of_the_targets_are_named_in_their_procedures() -> None:
    source = Path(durable.__file__).read_text()
    for scenario in KEPT_SCENARIOS:
        assert scenario.kind is Kind.KEPT
        assert all(f'"{target.figure}"' in source for target in scenario.targets)


def stage(name: str, scale: float = 0.01) -> Stage:
    return Stage(BROKERS[name], 0.3, 0.1, pinned=False, cpu=None, mqtt_version="3.1.1", scale=scale)


def test_sizes_shrink_to_multiples() -> None:
    assert (stage("mosquitto").size(100_000), stage("mosquitto").size(100_000, 300)) == (1000, 900)
    assert stage("mosquitto").size(10, 10) == 10


both = pytest.mark.parametrize("name", ["brookmq", "mosquitto"])


@both
def test_messages_for_absent_sessions_are_counted_until_they_are_back(name: str) -> None:
    figures = durable.away(stage(name))
    assert figures["messages_per_s"] > 0
    assert figures["cpu_us"] > 0
    assert figures["drained_per_s"] > 0


@both
def test_what_waits_survives_the_restart_of_a_broker_that_keeps_its_data(name: str) -> None:
    figures = durable.drain(stage(name))
    assert figures["drained_per_s"] > 0
    assert figures["drained_after_restart_per_s"] > 0


def test_kept_sessions_are_measured_against_others() -> None:
    figures = durable.kept(stage("mosquitto"), qos=1)
    assert figures["extra_us"] == pytest.approx(figures["kept_us"] - figures["transient_us"])


@both
def test_a_wave_is_measured_against_the_quiet_before_it(name: str) -> None:
    figures = durable.wave(stage(name))
    assert figures["quiet_p99_ms"] > 0
    assert figures["wave_p99_of_allowed"] == pytest.approx(
        figures["wave_p99_ms"] / max(3 * figures["quiet_p99_ms"], 20.0)
    )


def test_the_journal_grows_with_messages_for_kept_sessions() -> None:
    assert durable.growth(stage("brookmq"))["journal_bytes_per_message"] > 16  # the payload alone


@pytest.mark.long
def test_few_messages_among_many_are_found_before_and_after_a_restart() -> None:
    figures = durable.needles(stage("brookmq", 0.001))
    assert figures["back_s"] > 0
    assert figures["back_after_restart_s"] > 0
    assert figures["journal_bytes"] > 0


@pytest.mark.long
def test_stored_sessions_are_there_when_a_node_starts() -> None:
    figures = durable.start(stage("brookmq", 0.002))
    assert figures["ready_growth"] == pytest.approx(figures["ready_many_s"] / figures["ready_few_s"])
    assert figures["first_connect_s"] > 0


def test_a_broker_that_forgets_fails_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = BROKERS["mosquitto"]
    start = broker.running
    monkeypatch.setattr(broker, "running", lambda **given: start(**{**given, "durable": False}))
    with pytest.raises(BrokerError, match="1,000 messages lost"):
        durable.drain(stage("mosquitto"))


def test_a_scenario_for_one_broker_is_run_with_that_one_alone() -> None:
    asked: list[str] = []
    [scenario] = [scenario for scenario in KEPT_SCENARIOS if scenario.key == "store-growth"]
    figures = {target.figure: 1.0 for target in scenario.targets}

    def note(stage: Stage) -> dict[str, float]:
        asked.append(stage.broker.name)
        return figures

    scenarios = [replace(scenario, procedure=note)]
    plan = Plan(scenarios, list(BROKERS.values()), 2, 0.1, 0.1, pinned=False, command="test", mqtt_version="5")
    results = Results({})
    assert run(plan, results, None, lambda line: None) == []
    assert asked == ["brookmq", "brookmq"]
    assert results.series["store-growth"].figure("brookmq", "figures", "p99_ms") == 1.0


def test_bytes_of_streams_are_those_of_their_files(tmp_path: Path) -> None:
    for name, size in (("JOURNAL_0/msgs/1.blk", 100), ("JOURNAL_1/msgs/1.blk", 20), ("SESSIONS/msgs/1.blk", 3)):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(bytes(size))
    assert (bytes_on_disk(tmp_path, "journal"), bytes_on_disk(tmp_path, "sessions")) == (120, 3)


@pytest.fixture
def metrics_page() -> Iterator[int]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'# TYPE a_total counter\na_total 12\na_total_more 13\nb{shard="0"} 1.5e3\n')

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_a_metric_is_read_by_its_name(metrics_page: int, tmp_path: Path) -> None:
    running = Running(1, 2, None, metrics_page, tmp_path, 0.0, 1.5)
    assert (metric(running, "a_total"), metric(running, "b"), running.start_s) == (12.0, 1500.0, 1.5)
    with pytest.raises(BrokerError, match="the metrics have no c"):
        metric(running, "c")
