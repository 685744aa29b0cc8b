"""The side-by-side run: medians, ratios and verdicts out of raw rounds, and brokers that come and go."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from bench.brokers import BROKERS, BrokerError
from bench.results import Results, Series
from bench.tables import Table, ratio_text, tables

from bench import catalogue, runner

MACHINE = {"processor": "one", "cores": "2", "memory": "4 GiB", "system": "Linux 6", "python": "3.11.7"}


def results(**costs: tuple[list[float], list[float]]) -> Results:
    """Results with CPU per message of (mosquitto, brookmq) for each scenario, by round."""
    made = Results(MACHINE)
    for key, (theirs, ours) in costs.items():
        series = Series("2026-01-01", "python -m bench", pinned=False, versions={}, load_before=0.1)
        for broker, figures in (("mosquitto", theirs), ("brookmq", ours)):
            for figure in figures:
                series.add(broker, {"broker_cpu_us_per_message": figure, "messages_per_s": 1000.0})
        made.series[key.replace("_", "-")] = series
    return made


def only_table(made: Results) -> Table:
    [table] = tables(made)
    return table


@pytest.mark.parametrize(("ours", "expected"), [([1.0, 0.4, 0.5], "ok"), ([1.0, 1.1, 0.5], "short")])
def test_the_median_is_compared_with_the_target(ours: list[float], expected: str) -> None:
    [row] = only_table(results(fan_in_0=([7.0, 6.0, 100.0], ours))).rows
    assert row[3:5] == ("7.00", f"{sorted(ours)[1]:.2f}")
    assert row[-2:] == ("1/12", expected)


def test_without_the_other_broker_there_is_no_verdict() -> None:
    [row] = only_table(results(pairs_0=([], [0.5]))).rows
    assert row[-3:] == ("—", "1/8", "")


def test_growth_of_the_index_may_be_relative_or_absolute() -> None:
    def verdict_of(start: float, end: float, kind: str) -> str:
        made = results(**{f"wildcards_1000_{kind}": ([9.0], [start]), f"wildcards_100000_{kind}": ([9.0], [end])})
        return only_table(made).rows[-1][-1]

    assert verdict_of(0.3, 1.2, "seen") == "ok"  # four times, but less than 1 µs more
    assert verdict_of(3.0, 4.4, "seen") == "ok"
    assert verdict_of(3.0, 4.6, "seen") == "short"
    assert verdict_of(1.0, 3.9, "new") == "ok"
    assert verdict_of(1.0, 4.1, "new") == "short"


def test_a_busy_tool_and_losses_are_marked() -> None:
    made = results(shared_0=([1.0], [1.0]))
    made.series["shared-0"].add("brookmq", {"messages_per_s": 1000.0, "tool_was_limit": True, "lost": 3})
    assert only_table(made).rows[0][2] == "1,000\\*†"


@pytest.mark.parametrize(
    ("ratio", "text"), [(None, "—"), (1 / 12, "1/12"), (Fraction(1, 8), "1/8"), (0.9, "0.90"), (1.5, "1.50")]
)
def test_ratios_are_written_as_the_targets_are(ratio: float | None, text: str) -> None:
    assert ratio_text(ratio) == text


def test_results_survive_the_file(tmp_path: Path) -> None:
    made = results(pairs_1=([16.0], [1.0]))
    made.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == made


def test_scenarios_are_chosen_by_the_beginning_of_their_key() -> None:
    assert [scenario.key for scenario in catalogue.chosen(("pairs", "connect"))] == [
        "pairs-0", "pairs-1", "pairs-2", "connect",
    ]  # fmt: skip
    assert len({scenario.key for scenario in catalogue.SCENARIOS}) == len(catalogue.SCENARIOS)
    with pytest.raises(ValueError, match="no scenario begins with 'nothing'"):
        catalogue.chosen(("nothing",))


def test_latency_has_five_rounds_at_least() -> None:
    [scenario] = catalogue.chosen(("latency-10000",))
    assert (scenario.rounds(1), scenario.rounds(7)) == (5, 7)


@pytest.mark.parametrize("name", ["brookmq", "mosquitto"])
def test_a_load_against_a_real_broker(name: str) -> None:
    with BROKERS[name].running() as running:
        target = ["--port", str(running.port), "--broker-pid", str(running.pid)]
        load = ["pairs", "--pairs", "2", "--count", "200", "--qos", "2"]
        report = runner.run_tool([*load, *target], pinned=False)
        retained = runner.run_tool(["retained", "--topics", "50", "--subscribers", "2", *target], pinned=False)
        takeover = runner.run_tool(["takeover", "--client-ids", "5", "--takeovers", "20", *target], pinned=False)
    assert (report["sent"], report["received"], report["lost"]) == (400, 400, 0)
    assert report["broker_resident_bytes"] > 1_000_000
    assert (retained["received"], retained["lost"]) == (100, 0)
    assert (takeover["connects"], takeover["dropped_connections"]) == (20, 20)


def test_a_failed_load_is_an_error_with_the_tools_line() -> None:
    with pytest.raises(BrokerError, match="refused"):
        runner.run_tool(["pub", "--port", "1", "--count", "1"], pinned=False)
