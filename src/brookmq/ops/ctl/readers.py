"""Commands about declared readers of the journal."""

from __future__ import annotations

import click

from brookmq.ops.ctl.connection import Node, segment
from brookmq.ops.ctl.options import node_options
from brookmq.ops.ctl.output import Column, moment_of, print_facts, print_json, print_listing

COLUMNS: tuple[Column, ...] = (
    ("reader", lambda row: row["name"]),
    ("lag", lambda row: row["lag"]),
    ("lost", lambda row: row["lost"]),
    ("alive", lambda row: row["alive"]),
    ("seen at", lambda row: moment_of(row["seen_at"])),
    ("filters", lambda row: " ".join(row["filter"])),
)


@click.group()
def readers() -> None:
    """List, show and drop declared readers of the journal, such as Spark queries."""


@readers.command(name="list")
@node_options
def list_readers(node: Node, as_json: bool) -> None:
    """List readers by name: how far behind they are, and what they lost to retention.

    \b
    Example:
      brookmq ctl readers list
    """
    print_listing(node.get("/readers"), COLUMNS, limit=None, as_json=as_json)


@readers.command(name="show")
@click.argument("name")
@node_options
def show_reader(node: Node, as_json: bool, name: str) -> None:
    """Show one reader with its position in each shard.

    \b
    Example:
      brookmq ctl readers show hourly-report
    """
    found = node.get(f"/readers/{segment(name)}")
    if as_json:
        print_json(found)
        return
    print_facts(
        {
            "reader": found["name"],
            "journal": found["journal"],
            "alive": found["alive"],
            "seen at": moment_of(found["seen_at"]),
            "lag": f"{found['lag']} messages",
            "lost": f"{found['lost']} messages",
            "filters": ", ".join(found["filter"]) or "all",
            "position": ", ".join(f"{shard}: {offset}" for shard, offset in found["position"].items()),
        }
    )


@readers.command(name="drop")
@click.argument("name")
@node_options
def drop_reader(node: Node, as_json: bool, name: str) -> None:
    """Forget a reader that is gone: it holds back nothing any more. One that is there is known again when it reads on.

    \b
    Example:
      brookmq ctl readers drop hourly-report
    """
    node.request("DELETE", f"/readers/{segment(name)}")
    if as_json:
        print_json({"name": name, "dropped": True})
    else:
        click.echo("dropped")
