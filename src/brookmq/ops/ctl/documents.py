"""What the commands about rules, schemas, tables and resources share: documents from flags and files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from brookmq.ops.ctl.connection import SLOW_ANSWER_WAIT_S, Node, NodeRefused, segment
from brookmq.ops.ctl.output import print_json, printable

SHOWN = {"name", "created_at", "changed_at", "revision", "state", "message", "statistics", "used_by"}
"""What ``show --json`` prints and nobody writes: a file that was made with it can be read back."""

NOT_FOUND = "not_found"

file_option = click.option(
    "--file", default=None, type=click.File("r"), help="The document as JSON; - is stdin. Other options change it."
)
replace_option = click.option("--replace", is_flag=True, help="Change the one that is there.")


def document(file: IO[str] | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the file has, changed by the options that were given."""
    found = {} if file is None else _object(file.read(), file.name)
    written = {key: value for key, value in found.items() if key not in SHOWN}
    return {**written, **{key: value for key, value in given.items() if value is not None}}


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"{where} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise click.UsageError(f"{where} has to be a JSON object")
    return found


def json_objects(_context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> list[dict[str, Any]]:
    """The callback of an option that takes JSON objects."""
    return [_object(text, parameter.opts[-1]) for text in texts]


def settings(_context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, object] | None:
    """``NAME=VALUE`` and ``NAME=@FILE`` as a table; the callback of ``--set``. A JSON object or list is one."""
    found: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        if value.startswith("@"):
            try:
                value = Path(value[1:]).read_text().rstrip("\n")
            except (OSError, UnicodeDecodeError) as error:
                raise click.BadParameter(f"{value[1:]} can't be read: {error}") from None
        found[name] = value
        if value[:1] in ("{", "["):
            try:
                found[name] = json.loads(value)
            except ValueError:
                found[name] = value
    return found or None


def put(
    node: Node, path: str, name: str, body: Mapping[str, Any], *, replace: bool, as_json: bool, sql: str = ""
) -> None:
    """Write a document and say so. One that is there is changed on demand only."""
    if not replace and _exists(node, f"{path}/{segment(name)}"):
        raise click.UsageError(f"{name} exists; --replace changes it.")
    with pointing_out(sql):
        found = node.request("PUT", f"{path}/{segment(name)}", body=body, wait_s=SLOW_ANSWER_WAIT_S)
    if as_json:
        print_json(found)
    else:
        click.echo("created" if found["revision"] == 1 else "changed")


def delete(node: Node, path: str, name: str, *, as_json: bool) -> None:
    node.request("DELETE", f"{path}/{segment(name)}")
    if as_json:
        print_json({"name": name, "deleted": True})
    else:
        click.echo("deleted")


def switch(node: Node, path: str, name: str, *, enabled: bool, as_json: bool) -> None:
    """Enable or disable, and say what that means now."""
    found = node.request("POST", f"{path}/{segment(name)}/{'enable' if enabled else 'disable'}")
    if as_json:
        print_json(found)
    else:
        click.echo(found["state"])


def _exists(node: Node, path: str) -> bool:
    try:
        node.get(path)
    except NodeRefused as refusal:
        if refusal.code == NOT_FOUND:
            return False
        raise
    return True


@contextmanager
def pointing_out(sql: str) -> Iterator[None]:
    """Shows the line of a rule that the node refuses, and the place in it."""
    try:
        yield
    except NodeRefused as refusal:
        lines, line = sql.splitlines(), refusal.details.get("line", 0)
        if not 1 <= line <= len(lines):
            raise
        shown = printable(lines[line - 1].replace("\t", " "))
        mark = " " * (refusal.details["column"] - 1) + "^"
        raise NodeRefused(f"{refusal.message}\n\n  {shown}\n  {mark}", refusal.code, refusal.details) from None
