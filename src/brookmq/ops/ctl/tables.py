"""Commands about declared tables."""

from __future__ import annotations

from typing import IO

import click

from brookmq.ops.ctl.connection import Node, segment
from brookmq.ops.ctl.documents import delete, document, file_option, put, replace_option, switch
from brookmq.ops.ctl.options import node_options
from brookmq.ops.ctl.output import Column, moment_of, print_facts, print_json, print_listing
from brookmq.ops.ctl.rules import figure, state

PATH = "/tables"
KINDS = ("bronze", "silver", "gold_last", "gold_minute")
FORMATS = ("delta", "parquet", "iceberg")
COLUMNS: tuple[Column, ...] = (
    ("table", lambda row: row["name"]),
    ("kind", lambda row: row["kind"]),
    ("state", state),
    ("rows", lambda row: figure(row, "passed")),
    ("lag", lambda row: figure(row, "lag")),
    ("path", lambda row: row["path"]),
    ("filters", lambda row: " ".join(row["filter"])),
)


@click.group()
def tables() -> None:
    """Declare, list and delete tables that a pipeline keeps up to date.

    bronze has messages as they came, silver decoded ones, gold_last the last values of each device, gold_minute figures
    of each minute.

    \b
    Example:
      brookmq ctl tables create raw --kind bronze --filter 'sensors/#' --path tables/raw
    """


@tables.command(name="list")
@node_options
def list_tables(node: Node, as_json: bool) -> None:
    """List declared tables by name.

    \b
    Example:
      brookmq ctl tables list
    """
    print_listing(node.get(PATH), COLUMNS, limit=None, as_json=as_json)


@tables.command(name="show")
@click.argument("name")
@node_options
def show_table(node: Node, as_json: bool, name: str) -> None:
    """Show one declared table with its figures.

    \b
    Example:
      brookmq ctl tables show raw
    """
    found = node.get(f"{PATH}/{segment(name)}")
    if as_json:
        print_json(found)
        return
    statistics = found["statistics"] or {}
    print_facts(
        {
            "table": found["name"],
            "description": found["description"] or None,
            "kind": found["kind"],
            "filters": ", ".join(found["filter"]),
            "schema": found["schema"],
            "path": found["path"],
            "format": found["format"],
            "state": state(found),
            **{name.replace("_", " "): value for name, value in statistics.items() if name != "since"},
            "changed at": moment_of(found["changed_at"]),
            "revision": found["revision"],
        }
    )


@tables.command(name="create")
@click.argument("name")
@click.option("--kind", default=None, type=click.Choice(KINDS), help="What is in it.")
@click.option(
    "--filter", "filters", multiple=True, metavar="FILTER", help="Whose messages; may be repeated. # if none."
)
@click.option("--path", default=None, metavar="PATH", help="A folder, or a relative path from where the pipeline runs.")
@click.option("--format", "table_format", default=None, type=click.Choice(FORMATS), help="delta if not given.")
@click.option("--schema", default=None, metavar="NAME", help="The schema of the payloads; without one they are JSON.")
@click.option("--disabled", is_flag=True, help="Do not keep it up to date yet.")
@click.option("--description", default=None, metavar="TEXT", help="What it is for.")
@file_option
@replace_option
@node_options
def create_table(
    node: Node,
    as_json: bool,
    name: str,
    kind: str | None,
    filters: tuple[str, ...],
    path: str | None,
    table_format: str | None,
    schema: str | None,
    disabled: bool,
    description: str | None,
    file: IO[str] | None,
    replace: bool,
) -> None:
    """Declare the table NAME.

    \b
    Example:
      brookmq ctl tables create last --kind gold_last --filter 'sensors/#' --path tables/last
    """
    given = {
        "kind": kind,
        "filter": list(filters) or None,
        "path": path,
        "format": table_format,
        "schema": schema,
        "enabled": False if disabled else None,
        "description": description,
    }
    put(node, PATH, name, document(file, given), replace=replace, as_json=as_json)


@tables.command(name="enable")
@click.argument("name")
@node_options
def enable_table(node: Node, as_json: bool, name: str) -> None:
    """Keep a table up to date.

    \b
    Example:
      brookmq ctl tables enable raw
    """
    switch(node, PATH, name, enabled=True, as_json=as_json)


@tables.command(name="disable")
@click.argument("name")
@node_options
def disable_table(node: Node, as_json: bool, name: str) -> None:
    """Leave a table as it is.

    \b
    Example:
      brookmq ctl tables disable raw
    """
    switch(node, PATH, name, enabled=False, as_json=as_json)


@tables.command(name="delete")
@click.argument("name")
@node_options
def delete_table(node: Node, as_json: bool, name: str) -> None:
    """Forget a declared table. Its files stay.

    \b
    Example:
      brookmq ctl tables delete raw
    """
    delete(node, PATH, name, as_json=as_json)
