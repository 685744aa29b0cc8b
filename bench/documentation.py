"""Writes the tables of the results files into docs/performance.md, each between two markers."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.results import Results, Series
from bench.spark.results import Results as SparkResults
from bench.spark.tables import tables as spark_tables
from bench.tables import Table, tables

PAGE: Final = Path(__file__).parent.parent / "docs" / "performance.md"
BEGIN: Final = "<!-- tables: begin -->"
END: Final = "<!-- tables: end -->"
SPARK_BEGIN: Final = "<!-- spark: begin -->"
SPARK_END: Final = "<!-- spark: end -->"


def section(results: Results) -> str:
    """What stands between the markers for these results."""
    made = tables(results)
    parts = [
        _machine(results.machine),
        *_origins(list(results.series.values())),
        *(table.markdown() for table in made),
        "\\* The load tool was over 90 % busy: the broker could do more than shown. † Messages of QoS 0 were lost.\n",
        _short(made),
    ]
    return "\n".join(parts)


def spark_section(results: SparkResults) -> str:
    """The same for Spark."""
    made = spark_tables(results)
    origins = set()
    for part in results.parts.values():
        versions = ", ".join(f"{name} {version}" for name, version in sorted(part.versions.items()))
        rounds = f"{len(part.rounds)} rounds of {part.date}"
        origins.add(f"{rounds}: `{part.command}` ({versions}; the machine's load before: {part.load_before:g}).\n")
    tables_text = (table.markdown() for table in made)
    return "\n".join([_machine(results.machine), *sorted(origins), *tables_text, _short(made)])


def _machine(machine: dict[str, str]) -> str:
    what = ", ".join((machine["processor"], f"{machine['cores']} cores", machine["memory"], machine["system"]))
    return f"Machine: {what}, Python {machine['python']}.\n"


def _short(made: list[Table]) -> str:
    shorts = (f"{table.title}, {row[0]}" for table in made for row in table.rows if row[-1] == "short")
    short = list(dict.fromkeys(shorts))  # a scenario of several figures is named once
    return f"Short of what is to be reached: {'; '.join(short) if short else 'nothing'}.\n"


def _origins(series: list[Series]) -> list[str]:
    """When and how: one line, or several when the scenarios come from different runs."""
    origins: dict[tuple[str, str, str, float], int] = {}
    for one in series:
        versions = ", ".join(f"{name} {version}" for name, version in sorted(one.versions.items()))
        origin = (one.date, one.command, versions, one.load_before)
        origins[origin] = origins.get(origin, 0) + 1
    return [
        f"{count} scenarios of {date}: `{command}` ({versions}; the machine's load before: {load:g}).\n"
        for (date, command, versions, load), count in sorted(origins.items())
    ]


def inserted(page: str, text: str, begin: str = BEGIN, end: str = END) -> str:
    before, found_begin, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"{PAGE.name} lacks the markers {begin} and {end}")
    return f"{before}{begin}\n\n{text}\n{end}{after}"


def write(results: Results, page: Path = PAGE) -> None:
    page.write_text(inserted(page.read_text(), section(results)))


def write_spark(results: SparkResults, page: Path = PAGE) -> None:
    page.write_text(inserted(page.read_text(), spark_section(results), SPARK_BEGIN, SPARK_END))
