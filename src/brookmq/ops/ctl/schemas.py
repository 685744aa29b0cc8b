"""Commands about schemas of payloads."""

from __future__ import annotations

import json
from typing import IO, Any

import click

from brookmq.ops.ctl.connection import Node, segment
from brookmq.ops.ctl.documents import delete, document, file_option, put, replace_option, settings
from brookmq.ops.ctl.options import node_options
from brookmq.ops.ctl.output import Column, moment_of, print_facts, print_json, print_listing

PATH = "/schemas"
KINDS = ("json", "csv", "text", "avro", "protobuf", "sparkplug")
COLUMNS: tuple[Column, ...] = (
    ("schema", lambda row: row["name"]),
    ("kind", lambda row: row["kind"]),
    ("used by", lambda row: " ".join(row["used_by"])),
    ("description", lambda row: row["description"]),
)


@click.group()
def schemas() -> None:
    """Write, list and delete schemas: how payloads other than free JSON are read.

    \b
    Examples:
      brookmq ctl schemas create reading --kind csv --set fields='temp double, room string'
      brookmq ctl schemas create meter --kind protobuf --set proto=@meter.proto --set message=Meter
    """


@schemas.command(name="list")
@node_options
def list_schemas(node: Node, as_json: bool) -> None:
    """List schemas by name.

    \b
    Example:
      brookmq ctl schemas list
    """
    print_listing(node.get(PATH), COLUMNS, limit=None, as_json=as_json)


@schemas.command(name="show")
@click.argument("name")
@node_options
def show_schema(node: Node, as_json: bool, name: str) -> None:
    """Show one schema with its definition.

    \b
    Example:
      brookmq ctl schemas show reading
    """
    found = node.get(f"{PATH}/{segment(name)}")
    if as_json:
        print_json(found)
        return
    definition = {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in found["definition"].items()
    }
    print_facts(
        {
            "schema": found["name"],
            "description": found["description"] or None,
            "kind": found["kind"],
            **definition,
            "used by": ", ".join(found["used_by"]) or None,
            "changed at": moment_of(found["changed_at"]),
            "revision": found["revision"],
        }
    )


@schemas.command(name="create")
@click.argument("name")
@click.option("--kind", default=None, type=click.Choice(KINDS), help="What the payloads are.")
@click.option(
    "--set",
    "definition",
    multiple=True,
    callback=settings,
    metavar="NAME=VALUE",
    help="Of its definition; NAME=@FILE takes the text of a file. May be repeated.",
)
@click.option("--description", default=None, metavar="TEXT", help="What it is for.")
@file_option
@replace_option
@node_options
def create_schema(
    node: Node,
    as_json: bool,
    name: str,
    kind: str | None,
    definition: dict[str, Any] | None,
    description: str | None,
    file: IO[str] | None,
    replace: bool,
) -> None:
    """Write the schema NAME. A change with which a rule would not work any more is refused.

    \b
    Examples:
      brookmq ctl schemas create reading --kind csv --set fields='temp double, room string' --set separator=';'
      brookmq ctl schemas create meter --kind avro --set schema=@meter.avsc
    """
    body = document(file, {"kind": kind, "definition": definition, "description": description})
    put(node, PATH, name, body, replace=replace, as_json=as_json)


@schemas.command(name="delete")
@click.argument("name")
@node_options
def delete_schema(node: Node, as_json: bool, name: str) -> None:
    """Forget a schema that nobody uses.

    \b
    Example:
      brookmq ctl schemas delete reading
    """
    delete(node, PATH, name, as_json=as_json)
