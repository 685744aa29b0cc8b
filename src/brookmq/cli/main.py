"""The command ``brookmq`` itself."""

from __future__ import annotations

import platform

import click

import brookmq
from brookmq import _pure
from brookmq.cli.lazy import LazyCommand, LazyGroup


def version_line() -> str:
    return f"brookmq {brookmq.__version__} (Python {platform.python_version()}, {_pure.form()})"


def _print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(version_line())
        context.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    lazy={
        "start": LazyCommand("brookmq.cli.start:start", "Start a node."),
        "conf": LazyCommand("brookmq.cli.conf:conf", "Check a configuration, or print an example of one."),
        "cluster": LazyCommand("brookmq.cli.cluster:cluster", "Make nodes the cores of a cluster."),
        "ctl": LazyCommand("brookmq.ops.ctl:ctl", "Ask and steer a running node."),
        "pipeline": LazyCommand("brookmq.spark.pipeline.cli:pipeline", "Run rules and tables in Spark."),
        "bench": LazyCommand("brookmq.bench.cli:bench", "Put load on a broker and measure it."),
    },
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version, and whether the compiled modules are in use.",
)
def main() -> None:
    """BrookMQ, an MQTT broker for fleets of devices.

    \b
    Examples:
      brookmq start                          a node on 127.0.0.1:1883
      brookmq conf example > brookmq.toml    a file with every setting
      brookmq start --config brookmq.toml
      brookmq ctl status                     what the node is doing
    """
