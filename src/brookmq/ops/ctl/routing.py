"""Commands about who gets what: subscriptions and topic filters."""

from __future__ import annotations

import click

from brookmq.ops.ctl.connection import Node
from brookmq.ops.ctl.options import list_options
from brookmq.ops.ctl.output import Column, print_listing

SUBSCRIPTION_COLUMNS: tuple[Column, ...] = (
    ("client id", lambda row: row["client_id"]),
    ("filter", lambda row: row["filter"]),
    ("qos", lambda row: row["qos"]),
    ("no local", lambda row: row["no_local"]),
    ("retain as published", lambda row: row["retain_as_published"]),
    ("identifier", lambda row: row["identifier"]),
)
TOPIC_COLUMNS: tuple[Column, ...] = (
    ("filter", lambda row: row["filter"]),
    ("subscribers", lambda row: row["subscribers"]),
)


@click.group()
def subscriptions() -> None:
    """List subscriptions."""


@subscriptions.command(name="list")
@click.option("--client-id", default=None, metavar="ID", help="Only those of this client.")
@click.option("--filter", "topic_filter", default=None, metavar="FILTER", help="Only those to exactly this filter.")
@list_options
def list_subscriptions(
    node: Node, as_json: bool, limit: int | None, client_id: str | None, topic_filter: str | None
) -> None:
    """List subscriptions by client id and filter.

    \b
    Examples:
      brookmq ctl subscriptions list
      brookmq ctl subscriptions list --client-id pump-7
      brookmq ctl subscriptions list --filter 'room/+/light'
    """
    rows = node.listing("/subscriptions", limit, client_id=client_id, filter=topic_filter)
    print_listing(rows, SUBSCRIPTION_COLUMNS, limit=limit, as_json=as_json)


@click.group()
def topics() -> None:
    """List topic filters in use."""


@topics.command(name="list")
@click.option("--match", default=None, metavar="TOPIC", help="Only filters that match this topic name.")
@list_options
def list_topics(node: Node, as_json: bool, limit: int | None, match: str | None) -> None:
    """List the filters in use, each with the number of its subscribers.

    \b
    Examples:
      brookmq ctl topics list
      brookmq ctl topics list --match room/7/light
    """
    rows = node.listing("/topics", limit, match=match)
    print_listing(rows, TOPIC_COLUMNS, limit=limit, as_json=as_json)
