"""Commands about clients."""

from __future__ import annotations

import click

from brookmq.ops.ctl.connection import Node, segment
from brookmq.ops.ctl.options import list_options, node_options
from brookmq.ops.ctl.output import Column, age, duration, moment, print_facts, print_json, print_listing, size

VERSIONS = {3: "3.1", 4: "3.1.1", 5: "5.0"}
COLUMNS: tuple[Column, ...] = (
    ("client id", lambda row: row["client_id"]),
    ("connected", lambda row: age(row["connected_at"]) if row["connected"] else "no"),
    ("address", lambda row: row["address"]),
    ("user", lambda row: row["username"]),
    ("mqtt", lambda row: VERSIONS.get(row["protocol_version"], row["protocol_version"])),
    ("filters", lambda row: row["subscriptions"]),
    ("queued", lambda row: row["queued"]),
    ("behind", lambda row: row["behind"]),
)


@click.group()
def clients() -> None:
    """List, show, kick and forget clients.

    \b
    Examples:
      brookmq ctl clients list --connected
      brookmq ctl clients show pump-7
      brookmq ctl clients kick pump-7
      brookmq ctl clients forget pump-7
    """


@clients.command(name="list")
@click.option("--search", default=None, metavar="TEXT", help="Only with this in the client id or user name.")
@click.option("--connected/--away", default=None, help="Only those that are, or are not, connected.")
@list_options
def list_clients(node: Node, as_json: bool, limit: int | None, search: str | None, connected: bool | None) -> None:
    """List clients by client id.

    \b
    Examples:
      brookmq ctl clients list
      brookmq ctl clients list --search pump --away
      brookmq ctl clients list --all --json
    """
    rows = node.listing("/clients", limit, search=search, connected=connected)
    print_listing(rows, COLUMNS, limit=limit, as_json=as_json)


@clients.command(name="show")
@click.argument("client_id")
@node_options
def show_client(node: Node, as_json: bool, client_id: str) -> None:
    """Show one client with its traffic and subscriptions.

    \b
    Example:
      brookmq ctl clients show pump-7
    """
    detail = node.get(f"/clients/{segment(client_id)}")
    subscriptions = list(node.listing("/subscriptions", None, client_id=client_id))
    if as_json:
        print_json(detail | {"subscriptions": subscriptions})
        return
    print_facts(
        {
            "client id": detail["client_id"],
            "connected": detail["connected"],
            "address": detail["address"],
            "listener": detail["listener"],
            "user": detail["username"],
            "mqtt": VERSIONS.get(detail["protocol_version"], detail["protocol_version"]),
            "keep alive": f"{detail['keep_alive_s']} s",
            "clean start": detail["clean_start"],
            "session expiry": duration(detail["session_expiry_s"]),
            "connected at": moment(detail["connected_at"]),
            "disconnected at": moment(detail["disconnected_at"]),
            "in flight": detail["in_flight"],
            "queued": f"{detail['queued']} ({size(detail['queued_bytes'])})",
            "behind": f"{detail['behind']} messages of the journal to look at",
            "received": f"{detail['messages_received']} messages, {size(detail['bytes_received'])}",
            "sent": f"{detail['messages_sent']} messages, {size(detail['bytes_sent'])}",
            "dropped": f"{detail['messages_dropped']} messages",
            "subscriptions": ", ".join(f"{row['filter']} (QoS {row['qos']})" for row in subscriptions) or "none",
        }
    )


@clients.command(name="kick")
@click.argument("client_id")
@node_options
def kick_client(node: Node, as_json: bool, client_id: str) -> None:
    """End a client's connection and its session. It may connect again.

    \b
    Example:
      brookmq ctl clients kick pump-7
    """
    node.request("DELETE", f"/clients/{segment(client_id)}")
    if as_json:
        print_json({"client_id": client_id, "kicked": True})
    else:
        click.echo("kicked")


@clients.command(name="forget")
@click.argument("client_id")
@node_options
def forget_client(node: Node, as_json: bool, client_id: str) -> None:
    """Forget everything that the node keeps for a client, and end its connection.

    Its session goes, with subscriptions, what waits for it, and its will, which is not published; so do messages that
    it delayed. What stays: retained messages that it published, as they are their topics' values (`brookmq ctl retained
    delete`), and its client id in records of the journal until retention removes them ([journal] max_age).

    \b
    Example:
      brookmq ctl clients forget pump-7
    """
    node.request("DELETE", f"/clients/{segment(client_id)}/data")
    if as_json:
        print_json({"client_id": client_id, "forgotten": True})
    else:
        click.echo("forgotten")
