"""Commands about retained messages."""

from __future__ import annotations

import base64
import sys

import click

from brookmq.ops.ctl.connection import Node, segment
from brookmq.ops.ctl.options import list_options, node_options
from brookmq.ops.ctl.output import Column, moment, print_json, print_listing

COLUMNS: tuple[Column, ...] = (
    ("topic", lambda row: row["topic"]),
    ("qos", lambda row: row["qos"]),
    ("bytes", lambda row: row["payload_bytes"]),
    ("stored at", lambda row: moment(row["stored_at"])),
    ("expires at", lambda row: moment(row["expires_at"])),
)


@click.group()
def retained() -> None:
    """List, show and delete retained messages."""


@retained.command(name="list")
@click.option("--match", default=None, metavar="FILTER", help="Only topics that match this topic filter.")
@list_options
def list_retained(node: Node, as_json: bool, limit: int | None, match: str | None) -> None:
    """List retained messages by topic.

    \b
    Examples:
      brookmq ctl retained list
      brookmq ctl retained list --match 'room/#'
    """
    print_listing(node.listing("/retained", limit, match=match), COLUMNS, limit=limit, as_json=as_json)


@retained.command(name="show")
@click.argument("topic")
@node_options
def show_retained(node: Node, as_json: bool, topic: str) -> None:
    """Write the payload of a topic's retained message to stdout, as it is.

    \b
    Examples:
      brookmq ctl retained show room/7/light
      brookmq ctl retained show camera/3/frame > frame.jpg
    """
    message = node.get(f"/retained/{segment(topic)}")
    if as_json:
        print_json(message)
        return
    text = message["payload"]
    payload = base64.b64decode(text) if message["payload_encoding"] == "base64" else text.encode()
    click.echo(payload, nl=sys.stdout.isatty())


@retained.command(name="delete")
@click.argument("topic")
@node_options
def delete_retained(node: Node, as_json: bool, topic: str) -> None:
    """Forget the retained message of a topic.

    \b
    Example:
      brookmq ctl retained delete room/7/light
    """
    node.request("DELETE", f"/retained/{segment(topic)}")
    if as_json:
        print_json({"topic": topic, "deleted": True})
    else:
        click.echo("deleted")
