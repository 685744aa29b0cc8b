"""The command ``brookmq`` itself."""

from __future__ import annotations

import platform

import click

import brookmq
from brookmq import _pure


def _version_line() -> str:
    return f"brookmq {brookmq.__version__} (Python {platform.python_version()}, {_pure.form()})"


def _print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(_version_line())
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version and whether the compiled modules are in use.",
)
def main() -> None:
    """BrookMQ, an MQTT broker for fleets of devices."""
