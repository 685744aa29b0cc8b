"""``brookmq conf``: the configuration without a node."""

from __future__ import annotations

import os
from pathlib import Path

import click

from brookmq.base.config import check as problems_of
from brookmq.base.config.example import example as example_file
from brookmq.cli.failure import Failure


@click.group()
def conf() -> None:
    """Check a configuration, or print an example of one.

    \b
    Examples:
      brookmq conf example > brookmq.toml
      brookmq conf check brookmq.toml
    """


@conf.command(short_help="Say what is wrong with a configuration.")
@click.argument("file", type=click.Path(path_type=Path), required=False, envvar="BROOKMQ_CONFIG")
def check(file: Path | None) -> None:
    """Say what is wrong with FILE and the BROOKMQ_… variables of the environment, one line for each problem.

    Without FILE only the environment is checked. Exit code 0 when a node would accept it, 2 when not. Whether a port is
    free is seen at start only.

    \b
    Examples:
      brookmq conf check brookmq.toml
      BROOKMQ_MQTT__QOS_MAX=1 brookmq conf check
    """
    problems = problems_of(file, os.environ, {})
    if problems:
        raise Failure(*(str(problem) for problem in problems))
    click.echo(f"{file or 'the environment'}: good")


@conf.command(short_help="Print a file with every key.")
def example() -> None:
    """Print a TOML file with every key: its meaning, default, range and what happens at each limit.

    \b
    Example:
      brookmq conf example > brookmq.toml
    """
    click.echo(example_file(), nl=False)
