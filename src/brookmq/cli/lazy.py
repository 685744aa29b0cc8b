"""A group of commands that are imported when they are used.

``brookmq --help`` and ``brookmq ctl status`` should answer at once: neither has to wait for the broker, the HTTP server
and the configuration to be imported.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import click


@dataclass(frozen=True)
class LazyCommand:
    """Where a command stands (``module:attribute``) and its line in the help."""

    target: str
    summary: str

    def load(self, name: str) -> click.Command:
        module_name, _, attribute = self.target.partition(":")
        try:
            command = getattr(importlib.import_module(module_name), attribute)
        except ModuleNotFoundError as error:
            if error.name is None or not module_name.startswith(error.name):
                raise click.ClickException(
                    f"`brookmq {name}` needs the Python package {error.name}, which is not installed; run `make setup`"
                ) from error
            raise click.ClickException(
                f"this installation has no `brookmq {name}` ({module_name} is missing)"
            ) from error
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.target} is no command")
        return command


class LazyGroup(click.Group):
    """Knows its commands by name and summary only, until one is asked for."""

    def __init__(self, *args: Any, lazy: dict[str, LazyCommand] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = self._lazy.get(cmd_name)
        return lazy.load(cmd_name) if lazy else super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.summary) for name, lazy in self._lazy.items()])
