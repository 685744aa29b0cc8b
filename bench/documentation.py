"""Writes the tables of the results file into docs/performance.md, between two markers."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.results import Results, Series
from bench.tables import tables

PAGE: Final = Path(__file__).parent.parent / "docs" / "performance.md"
BEGIN: Final = "<!-- tables: begin -->"
END: Final = "<!-- tables: end -->"


def section(results: Results) -> str:
    """What stands between the markers for these results."""
    machine = results.machine
    what = ", ".join((machine["processor"], f"{machine['cores']} cores", machine["memory"], machine["system"]))
    made = tables(results)
    shorts = (f"{table.title}, {row[0]}" for table in made for row in table.rows if row[-1] == "short")
    short = list(dict.fromkeys(shorts))  # a scenario of several figures is named once
    parts = [
        f"Machine: {what}, Python {machine['python']}.\n",
        *_origins(list(results.series.values())),
        *(table.markdown() for table in made),
        "\\* The load tool was over 90 % busy: the broker could do more than shown. † Messages of QoS 0 were lost.\n",
        f"Short of what is to be reached: {'; '.join(short) if short else 'nothing'}.\n",
    ]
    return "\n".join(parts)


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


def inserted(page: str, text: str) -> str:
    before, found_begin, rest = page.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not found_begin or not found_end:
        raise ValueError(f"{PAGE.name} lacks the markers {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{text}\n{END}{after}"


def write(results: Results, page: Path = PAGE) -> None:
    page.write_text(inserted(page.read_text(), section(results)))
