"""``python -m bench``: BrookMQ and Mosquitto side by side."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table as RichTable

from bench import documentation, runner
from bench.brokers import BROKERS, BrokerError, Mosquitto
from bench.catalogue import chosen
from bench.certificates import temporary_certificates
from bench.results import RESULTS, Results, this_machine
from bench.tables import Table, tables

QUICK_DURATION_S, QUICK_WARM_UP_S, QUICK_SCALE = 1.0, 0.5, 0.01


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", default="", help="Scenarios by the beginning of their keys, separated by commas.")
@click.option("--brokers", "names", default=",".join(BROKERS), show_default=True, help="Which to run.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1), help="Latency has five at least.")
@click.option(
    "--duration", default=3.0, show_default=True, type=click.FloatRange(0.5), help="Measured seconds of a load."
)
@click.option("--warm-up", default=1.0, show_default=True, type=click.FloatRange(0.0), help="Seconds before that.")
@click.option("--quick", is_flag=True, help="One short and small round: to see that it works, not to quote.")
@click.option(
    "--scale",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0.0, 1.0, min_open=True),
    help="Make numbers of stored sessions and messages smaller; such figures are not to be quoted either.",
)
@click.option("--pin", is_flag=True, help="The broker on processor 0, the load tool on processor 1: steadier figures.")
@click.option("--mqtt-version", type=click.Choice(["3.1.1", "5"]), default="3.1.1", show_default=True)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the results here.")
@click.option("--merge", is_flag=True, help=f"Put these scenarios into {RESULTS.name}, keeping its others.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON instead of tables.")
@click.option("--write-docs", is_flag=True, help="Write docs/performance.md from the stored results, and run nothing.")
def main(
    only: str, names: str, rounds: int, duration: float, warm_up: float, quick: bool, scale: float, pin: bool,
    mqtt_version: str, output: Path | None, merge: bool, as_json: bool, write_docs: bool,
) -> None:  # fmt: skip
    """Measure BrookMQ side by side with Mosquitto.

    A full run goes to bench/results/side-by-side.json and docs/performance.md; a part of it (--only, --quick,
    --brokers) is printed and stored only where --output or --merge says.
    """
    if write_docs:
        documentation.write(Results.load(RESULTS))
        return
    if quick:
        rounds, duration, warm_up, scale = 1, QUICK_DURATION_S, QUICK_WARM_UP_S, QUICK_SCALE
    if merge and scale != 1.0:
        raise click.BadParameter("smaller sizes do not belong into the results", param_hint="--merge")
    try:
        scenarios = chosen(tuple(part for part in only.split(",") if part))
        brokers = [BROKERS[name] for name in names.split(",")]
        if "mosquitto" in names:
            Mosquitto.install()
        command = shlex.join(["python", "-m", "bench", *sys.argv[1:]])
        plan = runner.Plan(scenarios, brokers, rounds, duration, warm_up, pin, command, mqtt_version, scale)
        whole = not only and scale == 1.0 and len(brokers) == len(BROKERS)
        results = Results.load(RESULTS) if merge and RESULTS.exists() else Results(this_machine())
        results.tool = runner.self_test(pinned=pin) if not only or not results.tool else results.tool
        with temporary_certificates() as certificates:
            failures = runner.run(plan, results, certificates, lambda line: click.echo(line, err=True))
    except KeyError as error:
        raise click.BadParameter(f"unknown broker {error}; there are {', '.join(BROKERS)}") from error
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    except BrokerError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(asdict(results)))
    else:
        show(tables(results))
    if output is not None:
        results.save(output)
    if merge or (whole and output is None):
        results.save(RESULTS)
        documentation.write(results)
    for failure in failures:
        click.echo(failure, err=True)
    sys.exit(1 if failures else 0)


def show(made: list[Table]) -> None:
    """Drawn in a terminal, as Markdown elsewhere."""
    for table in made:
        if not sys.stdout.isatty():
            click.echo(table.markdown())
            continue
        drawn = RichTable(title=table.title, title_justify="left")
        for index, header in enumerate(table.headers):
            drawn.add_column(header, justify="left" if index == 0 else "right")
        for row in table.rows:
            colour = {"ok": "green", "short": "red"}.get(row[-1])
            drawn.add_row(*row[:-1], f"[{colour}]{row[-1]}[/]" if colour else row[-1])
        Console().print(drawn)


if __name__ == "__main__":
    main()
