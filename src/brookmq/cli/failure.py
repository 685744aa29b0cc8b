"""How the command line says that something outside is in the way: one line on standard error, exit code 2."""

from __future__ import annotations

import click

EXIT_CODE = 2


class Failure(click.ClickException):
    """Wrong configuration, port in use, disk full: the user can mend it, so no traceback."""

    exit_code = EXIT_CODE

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))

    def show(self, file: object = None) -> None:
        for line in self.message.splitlines():
            click.echo(f"brookmq: {line}", err=True)
