"""Commands about resources: connections that actions of rules share."""

from __future__ import annotations

import json
from typing import IO, Any

import click

from brookmq.ops.ctl.connection import Node, segment
from brookmq.ops.ctl.documents import delete, document, file_option, put, replace_option, settings
from brookmq.ops.ctl.options import node_options
from brookmq.ops.ctl.output import Column, moment_of, print_facts, print_json, print_listing

PATH = "/resources"
TYPES = ("postgresql", "webhook")
COLUMNS: tuple[Column, ...] = (
    ("resource", lambda row: row["name"]),
    ("type", lambda row: row["type"]),
    ("state", lambda row: row["state"]),
    ("address", lambda row: row["settings"].get("uri") or row["settings"].get("url")),
    ("used by", lambda row: " ".join(row["used_by"])),
)


@click.group()
def resources() -> None:
    """Write, list and delete resources: databases and HTTP addresses that actions of rules share.

    \b
    Example:
      brookmq ctl resources create db --type postgresql --set uri=postgresql://me@host/db --set password=@secret.txt
    """


@resources.command(name="list")
@node_options
def list_resources(node: Node, as_json: bool) -> None:
    """List resources by name.

    \b
    Example:
      brookmq ctl resources list
    """
    print_listing(node.get(PATH), COLUMNS, limit=None, as_json=as_json)


@resources.command(name="show")
@click.argument("name")
@node_options
def show_resource(node: Node, as_json: bool, name: str) -> None:
    """Show one resource. Passwords and tokens are shown as ******.

    \b
    Example:
      brookmq ctl resources show db
    """
    found = node.get(f"{PATH}/{segment(name)}")
    if as_json:
        print_json(found)
        return
    shown = {
        key: value if isinstance(value, str | None) else json.dumps(value) for key, value in found["settings"].items()
    }
    print_facts(
        {
            "resource": found["name"],
            "description": found["description"] or None,
            "type": found["type"],
            **shown,
            "state": found["state"],
            "used by": ", ".join(found["used_by"]) or None,
            "changed at": moment_of(found["changed_at"]),
            "revision": found["revision"],
        }
    )


@resources.command(name="create")
@click.argument("name")
@click.option("--type", "kind", default=None, type=click.Choice(TYPES), help="What is there.")
@click.option(
    "--set",
    "given",
    multiple=True,
    callback=settings,
    metavar="NAME=VALUE",
    help="Of its settings; NAME=@FILE takes the text of a file. May be repeated.",
)
@click.option("--description", default=None, metavar="TEXT", help="What it is for.")
@file_option
@replace_option
@node_options
def create_resource(
    node: Node,
    as_json: bool,
    name: str,
    kind: str | None,
    given: dict[str, Any] | None,
    description: str | None,
    file: IO[str] | None,
    replace: bool,
) -> None:
    """Write the resource NAME. Nobody sees its secrets any more but a pipeline.

    \b
    Examples:
      brookmq ctl resources create db --type postgresql --set uri=postgresql://me@host/db --set password=@secret.txt
      brookmq ctl resources create hook --type webhook --set url=https://host/in --set token=@token.txt
    """
    body = document(file, {"type": kind, "settings": given, "description": description})
    put(node, PATH, name, body, replace=replace, as_json=as_json)


@resources.command(name="delete")
@click.argument("name")
@node_options
def delete_resource(node: Node, as_json: bool, name: str) -> None:
    """Forget a resource that no rule uses.

    \b
    Example:
      brookmq ctl resources delete db
    """
    delete(node, PATH, name, as_json=as_json)
