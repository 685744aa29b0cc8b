"""The Spark figures: medians and ratios out of raw rounds, verdicts, and the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.spark.results import RESULTS, Figures, Part, Results
from bench.spark.tables import tables

from bench import documentation

MACHINE = {"processor": "one", "cores": "2", "memory": "4 GiB", "system": "Linux 6", "python": "3.11.7"}


def results(**parts: list[Figures]) -> Results:
    made = {
        key.replace("_", "-"): Part("2026-01-01", "python -m bench.spark", {"pyspark": "4.3.0"}, 0.1, rounds)
        for key, rounds in parts.items()
    }
    return Results(MACHINE, made)


@pytest.mark.parametrize(
    ("ours", "ratio", "expected"), [((0.6, 0.8, 0.7), "1.75", "ok"), ((1.0, 0.9, 0.8), "2.25", "short")]
)
def test_reads_are_compared_round_by_round(ours: tuple[float, ...], ratio: str, expected: str) -> None:
    rounds = [
        {"brookmq_cpu_s": cpu, "parquet_cpu_s": 0.4, "brookmq_rows_per_s": 2e6, "parquet_rows_per_s": 3e6}
        for cpu in ours
    ]
    [table] = tables(results(read_all=rounds))
    [row] = table.rows
    assert row[0] == "all columns"
    assert row[1:3] == ("0.40", f"{sorted(ours)[1]:.2f}")
    assert row[5:] == ("3,000,000", "2,000,000", ratio, "≤ 2", expected)


def test_each_part_has_its_limit() -> None:
    made = tables(
        results(
            partitions=[{"one_rows_per_s": 1e6, "all_rows_per_s": 1.8e6}],
            latency=[{"call_p50_s": 0.2, "rows_p50_s": 0.6, "rows_p90_s": 0.9}],
            idle=[{"store_percent": 0.4, "node_percent": 3.0}],
            capture_fan_in_1=[{
                "nothing_us": 1.0, "everything_us": 3.5, "extra_us": 2.5, "nothing_messages_per_s": 9.0,
                "everything_messages_per_s": 8.0,
            }],
            start=[{"pipeline_s": 11.0, "cache_s": 9.0, "no_cache_s": 16.0, "scripts_s": 20.0}],
        )
    )  # fmt: skip
    verdicts = {f"{table.title[:12]}/{row[0]}": row[-1] for table in made for row in table.rows}
    assert [verdict for verdict in verdicts.values() if verdict in ("ok", "short")] == [
        "ok", "short", "ok", "short", "ok", "ok",
    ]  # fmt: skip
    assert made[0].rows[0][-1] == "1.80"


def test_results_survive_the_file_and_reach_the_page(tmp_path: Path) -> None:
    made = results(start=[{"pipeline_s": 11.0, "cache_s": 9.0}])
    made.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == made
    page = tmp_path / "page.md"
    page.write_text(f"before\n{documentation.SPARK_BEGIN}\nold\n{documentation.SPARK_END}\nafter\n")
    documentation.write_spark(made, page)
    text = page.read_text()
    assert "old" not in text
    assert "| a program with the cache | 9.0 | ≤ 15 | ok |" in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")


def test_the_page_has_what_the_results_give() -> None:
    page = documentation.PAGE.read_text()
    section = documentation.spark_section(Results.load(RESULTS)) if RESULTS.exists() else "Not measured yet.\n"
    assert page == documentation.inserted(page, section, documentation.SPARK_BEGIN, documentation.SPARK_END)
