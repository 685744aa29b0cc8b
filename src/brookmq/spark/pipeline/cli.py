"""``brookmq pipeline``: run what the node says, declare the ready tables, see how a pipeline gets on."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from brookmq.base.errors import OperationError
from brookmq.spark.options import SERVERS_DEFAULT, servers

ROWS_PER_BATCH_DEFAULT: Final = 100_000
DATA_DIR_DEFAULT: Final = "brookmq-pipeline"
EXIT_NOT_RUNNING: Final = 1

Command = TypeVar("Command", bound=Callable[..., Any])


class Trouble(click.ClickException):
    """Something outside is in the way: one line, exit code 1."""

    def show(self, file: Any = None) -> None:
        click.echo(f"brookmq: {self.message}", err=True)


def _servers(_context: click.Context, _parameter: click.Parameter, text: str) -> tuple[str, ...]:
    try:
        return servers({"servers": text})
    except ValueError:
        raise click.BadParameter(f"{text!r} are no addresses such as {SERVERS_DEFAULT}") from None


def node_options(command: Command) -> Command:
    """``--servers`` and ``--token``."""
    command = click.option(
        "--token", envvar="BROOKMQ_TOKEN", show_envvar=True, metavar="TOKEN", help="For nodes that want a login."
    )(command)
    return click.option(
        "--servers",
        "addresses",
        envvar="BROOKMQ_URL",
        show_envvar=True,
        default=SERVERS_DEFAULT,
        show_default=True,
        metavar="URL[,URL…]",
        callback=_servers,
        help="HTTP addresses of nodes; the first one that answers is used.",
    )(command)


@click.group()
def pipeline() -> None:
    """Run rules and tables in Spark.

    \b
    Examples:
      brookmq pipeline init --filter 'sensors/#' --path ./lake   declare the ready tables
      brookmq pipeline run                                       run all rules and tables
      brookmq pipeline status                                    how they get on
    """


@pipeline.command()
@node_options
@click.option("--master", metavar="URL", help="Spark to run on; without it all cores of this machine (local[*,4]).")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=DATA_DIR_DEFAULT,
    show_default=True,
    metavar="FOLDER",
    help="Folder for how far queries are. Keep it: without it they may write again what they have written.",
)
@click.option("--once", is_flag=True, help="Read what is there, then end.")
@click.option(
    "--rows-per-batch",
    type=click.IntRange(min=1),
    default=ROWS_PER_BATCH_DEFAULT,
    show_default=True,
    metavar="ROWS",
    help="Messages that a batch takes at most; ten times as many where only files are written.",
)
@click.option("--json", "as_json", is_flag=True, help="Print how queries get on as JSON, one object a line.")
def run(
    addresses: tuple[str, ...],
    token: str | None,
    master: str | None,
    data_dir: Path,
    once: bool,
    rows_per_batch: int,
    as_json: bool,
) -> None:
    """Run all enabled rules and declared tables, until SIGTERM or Ctrl-C.

    What is changed at the node is taken up within two seconds. A query that fails is shown and tried again, while the
    others go on. Ctrl-C ends queries behind their batch; a second one at once.

    \b
    Examples:
      brookmq pipeline run
      brookmq pipeline run --once
      brookmq pipeline run --servers http://10.0.0.7:18083 --master spark://10.0.0.9:7077 --data-dir /shared/pipeline
    """
    if importlib.util.find_spec("pyspark") is None:
        raise Trouble("a pipeline needs Spark: install brookmq[spark]")
    from brookmq.spark.pipeline.display import display_for
    from brookmq.spark.pipeline.running import Pipeline, RunOptions

    _configure_logging()
    display = display_for(sys.stdout, as_json=as_json)
    found = Pipeline(RunOptions(addresses, token, master, data_dir, rows_per_batch, once), display)
    try:
        # What actions print goes past the JSON.
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            code = found.run()
    except OperationError as error:
        raise Trouble(str(error)) from error
    finally:
        display.close()
    if found.abandoned:
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def _configure_logging() -> None:
    """What we say, and not what py4j says of batches that fail: these are shown as such."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger("brookmq").addHandler(handler)
    logging.getLogger().addHandler(logging.NullHandler())


@pipeline.command()
@node_options
@click.option(
    "--filter", "filters", multiple=True, metavar="FILTER", help="Topics; may be given several times. [default: #]"
)
@click.option(
    "--path",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default="lake",
    show_default=True,
    metavar="FOLDER",
    help="Where the tables go, each into a folder of its own; as seen by the machine that runs the pipeline.",
)
@click.option("--schema", metavar="NAME", help="Schema of the payloads; without one they are JSON.")
@click.option("--format", "table_format", type=click.Choice(["delta", "iceberg", "parquet"]), default="delta")
@click.option("--prefix", default="", metavar="TEXT", help="Before the names of the tables: for a second set of them.")
@click.option("--replace", is_flag=True, help="Change tables that are declared already.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def init(
    addresses: tuple[str, ...],
    token: str | None,
    filters: tuple[str, ...],
    folder: Path,
    schema: str | None,
    table_format: str,
    prefix: str,
    replace: bool,
    as_json: bool,
) -> None:
    """Declare the ready tables bronze, silver, gold_last and gold_minute.

    They are filled by `brookmq pipeline run`, from all that is in the journal on.

    \b
    Examples:
      brookmq pipeline init
      brookmq pipeline init --filter 'sensors/#' --path /data/lake --schema reading
      brookmq pipeline init --filter 'spBv1.0/#' --schema plant --prefix plant_ --format iceberg
    """
    from brookmq.spark.pipeline.declaring import Declaration, declare
    from brookmq.spark.pipeline.documents import PipelineNode

    node = PipelineNode(addresses, token)
    wanted = Declaration(filters or ("#",), folder, schema, table_format, prefix, replace)
    try:
        declared = declare(node, wanted)
        capture = node.capture()
    except (LookupError, OSError, ValueError, OperationError) as error:
        raise Trouble(str(error).removeprefix("brookmq: ")) from error
    finally:
        node.close()
    if as_json:
        click.echo(json.dumps(declared, indent=2))
        return
    for name, body in declared.items():
        click.echo(f"{name}  {body['format']} at {body['path']}: {body['description']}")
    if not capture:
        click.echo('The node captures nothing yet: set [journal] capture, such as ["#"], and restart it.')
    click.echo("Next: `brookmq pipeline run` fills the tables; `brookmq pipeline status` shows how far they are.")
    if table_format == "delta":
        path = declared[f"{prefix}silver"]["path"]
        click.echo(f"Read one with: python -c \"import deltalake; print(deltalake.DeltaTable('{path}').to_pandas())\"")


@pipeline.command()
@node_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(addresses: tuple[str, ...], token: str | None, as_json: bool) -> None:
    """Show how the pipeline of a node gets on. The exit code is 1 if there is none.

    \b
    Examples:
      brookmq pipeline status
      brookmq pipeline status --json
    """
    from brookmq.spark.pipeline.documents import PipelineNode
    from brookmq.spark.pipeline.showing import show_status

    node = PipelineNode(addresses, token)
    try:
        found = node.status()
    except (LookupError, OSError, ValueError) as error:
        raise Trouble(str(error).removeprefix("brookmq: ")) from error
    finally:
        node.close()
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        show_status(found)
    if not found.get("alive"):
        sys.exit(EXIT_NOT_RUNNING)
