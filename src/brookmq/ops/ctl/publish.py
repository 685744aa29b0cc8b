"""The command that publishes a message."""

from __future__ import annotations

import base64
from typing import BinaryIO

import click

from brookmq.ops.ctl.connection import Node
from brookmq.ops.ctl.options import node_options
from brookmq.ops.ctl.output import print_json


def _pairs(_context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """``NAME=VALUE`` as pairs, in their order."""
    for text in texts:
        if "=" not in text:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
    return tuple((text.partition("=")[0], text.partition("=")[2]) for text in texts)


@click.command()
@click.argument("topic")
@click.option("-m", "--message", default=None, metavar="TEXT", help="The payload as text.")
@click.option("-f", "--file", default=None, type=click.File("rb"), help="The payload from a file; - is stdin.")
@click.option("-q", "--qos", type=click.IntRange(0, 2), default=0, show_default=True, help="Quality of service.")
@click.option("-r", "--retain", is_flag=True, help="Keep it as the topic's retained message.")
@click.option("--expiry", type=click.IntRange(min=0), default=None, metavar="SECONDS", help="Message expiry.")
@click.option("--content-type", default=None, metavar="TYPE", help="Content type, such as application/json.")
@click.option("--response-topic", default=None, metavar="TOPIC", help="Where an answer should go.")
@click.option(
    "-P",
    "--user-property",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_pairs,
    help="User property; may be repeated.",
)
@node_options
def publish(
    node: Node,
    as_json: bool,
    topic: str,
    message: str | None,
    file: BinaryIO | None,
    qos: int,
    retain: bool,
    expiry: int | None,
    content_type: str | None,
    response_topic: str | None,
    user_property: tuple[tuple[str, str], ...],
) -> None:
    """Publish a message to TOPIC and say how many subscriptions of the node got it.

    \b
    Examples:
      brookmq ctl publish room/7/light -m on
      brookmq ctl publish room/7/config -q 1 -r -f config.json --content-type application/json
      date | brookmq ctl publish clock -f -
    """
    if (message is None) == (file is None):
        raise click.UsageError("give the payload with either --message or --file (-m '' for an empty one)")
    payload = message.encode() if message is not None else file.read() if file is not None else b""
    body = {
        "topic": topic,
        "payload": base64.b64encode(payload).decode(),
        "payload_encoding": "base64",
        "qos": qos,
        "retain": retain,
        "properties": {
            "message_expiry_s": expiry,
            "content_type": content_type,
            "response_topic": response_topic,
            "user": list(user_property),
        },
    }
    answer = node.request("POST", "/publish", body=body)
    if as_json:
        print_json(answer)
    else:
        click.echo(f"published to {answer['receivers']} subscription{'' if answer['receivers'] == 1 else 's'}")
