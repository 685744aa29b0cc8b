"""``python -m bench.spark``: all figures of Spark on the journal in one run."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import click

from bench import documentation
from bench.results import this_machine
from bench.runner import QUIET_LOAD_MAX
from bench.spark.capturing import capture_rounds
from bench.spark.following import follow_rounds
from bench.spark.reading import read_rounds
from bench.spark.results import RESULTS, Figures, Part, Results
from bench.spark.starting import start_rounds
from bench.spark.tables import tables

ROWS: Final = 5_000_000
MESSAGES: Final = 100
IDLE_S: Final = 20.0
DURATION_S, WARM_UP_S = 5.0, 2.0
QUICK_ROWS, QUICK_MESSAGES, QUICK_IDLE_S, QUICK_DURATION_S, QUICK_WARM_UP_S = 20_000, 10, 1.0, 1.0, 0.5
PARTS: Final = ("read", "follow", "capture", "start")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", default=",".join(PARTS), show_default=True, help="Which parts, separated by commas.")
@click.option("--rows", default=ROWS, show_default=True, type=click.IntRange(1000), help="That are read, of 200 bytes.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1))
@click.option("--quick", is_flag=True, help="One small round: to see that it works, not to quote.")
@click.option("--pin", is_flag=True, help="The load tool on processor 1.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the results here.")
@click.option("--merge", is_flag=True, help=f"Put these parts into {RESULTS.name} and docs/performance.md.")
@click.option("--write-docs", is_flag=True, help="Write docs/performance.md from the stored results, and run nothing.")
def main(
    only: str, rows: int, rounds: int, quick: bool, pin: bool, output: Path | None, merge: bool, write_docs: bool
) -> None:
    """Measure reading, following, capturing and starting. Exit code 1 when a figure falls short."""
    if write_docs:
        documentation.write_spark(Results.load(RESULTS))
        return
    chosen = [part for part in only.split(",") if part]
    if unknown := set(chosen) - set(PARTS):
        raise click.BadParameter(f"there are {', '.join(PARTS)}, not {', '.join(sorted(unknown))}", param_hint="--only")
    if merge and (quick or rows != ROWS):
        raise click.BadParameter("smaller sizes do not belong into the results", param_hint="--merge")
    messages, idle_s, duration_s, warm_up_s = MESSAGES, IDLE_S, DURATION_S, WARM_UP_S
    if quick:
        rows, rounds, messages, idle_s = min(rows, QUICK_ROWS), 1, QUICK_MESSAGES, QUICK_IDLE_S
        duration_s, warm_up_s = QUICK_DURATION_S, QUICK_WARM_UP_S
    load_before = round(os.getloadavg()[0], 1)
    if load_before > QUIET_LOAD_MAX:
        _say(f"the machine is busy (load average {load_before}): none of these figures is to be quoted")
    versions = {name: version(name) for name in ("brookmq", "pyspark", "pyarrow")}
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    command = shlex.join(["python", "-m", "bench.spark", *sys.argv[1:]])
    results = Results.load(RESULTS) if merge and RESULTS.exists() else Results(this_machine())
    measures: dict[str, Callable[[Path], dict[str, list[Figures]]]] = {
        "read": lambda folder: read_rounds(folder, rows, rounds, _say),
        "follow": lambda folder: follow_rounds(folder, messages, idle_s, rounds, _say),
        "capture": lambda folder: capture_rounds(folder, duration_s, warm_up_s, rounds, pin, _say),
        "start": lambda folder: start_rounds(folder, rounds, _say),
    }
    for part in chosen:
        with tempfile.TemporaryDirectory(prefix="brookmq-bench-") as folder:
            for key, figures in measures[part](Path(folder)).items():
                results.parts[key] = Part(date, command, versions, load_before, figures)
        if merge:
            results.save(RESULTS)  # what is measured is measured, whatever becomes of the next part
    made = tables(results)
    for table in made:
        click.echo(table.markdown())
    if output is not None:
        results.save(output)
    if merge:
        documentation.write_spark(results)
    sys.exit(1 if any(row[-1] == "short" for table in made for row in table.rows) else 0)


def _say(line: str) -> None:
    click.echo(line, err=True)


if __name__ == "__main__":
    main()
