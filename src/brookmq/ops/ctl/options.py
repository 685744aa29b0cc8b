"""Options that all commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from brookmq.ops.ctl.connection import URL_DEFAULT, Node

Command = TypeVar("Command", bound=Callable[..., Any])

LIST_ROWS_DEFAULT = 100


def _to_node(_context: click.Context, _parameter: click.Parameter, url: str) -> Node:
    return Node(url)


def node_options(command: Command) -> Command:
    """``--url`` and ``--json``; the command gets ``node`` and ``as_json``."""
    command = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)
    return click.option(
        "--url",
        "node",
        envvar="BROOKMQ_URL",
        default=URL_DEFAULT,
        show_default=True,
        show_envvar=True,
        metavar="URL",
        callback=_to_node,
        help="HTTP address of the node.",
    )(command)


def list_options(command: Callable[..., None]) -> Callable[..., None]:
    """``--limit`` and ``--all``; the command gets ``limit``, which is ``None`` for all."""

    @functools.wraps(command)
    def limited(*, limit: int, all_rows: bool, **others: Any) -> None:
        command(limit=None if all_rows else limit, **others)

    with_all = click.option("--all", "all_rows", is_flag=True, help="Show all rows, however many.")(limited)
    with_limit = click.option(
        "--limit",
        type=click.IntRange(min=1),
        default=LIST_ROWS_DEFAULT,
        show_default=True,
        metavar="ROWS",
        help="Show so many rows at most.",
    )(with_all)
    return node_options(with_limit)
