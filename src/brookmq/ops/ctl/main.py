"""The command group ``ctl``."""

from __future__ import annotations

import click

from brookmq.ops.ctl.clients import clients
from brookmq.ops.ctl.data import data
from brookmq.ops.ctl.node import alarms, log_level, metrics, status
from brookmq.ops.ctl.publish import publish
from brookmq.ops.ctl.readers import readers
from brookmq.ops.ctl.resources import resources
from brookmq.ops.ctl.retained import retained
from brookmq.ops.ctl.routing import subscriptions, topics
from brookmq.ops.ctl.rules import rules
from brookmq.ops.ctl.schemas import schemas
from brookmq.ops.ctl.tables import tables


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def ctl() -> None:
    """Look at a running node, and act on it, over its HTTP API.

    Every command takes --url (or BROOKMQ_URL) to name the node and --json for programs. Lists are tables in a terminal
    and tab-separated lines with a head line in a pipe.

    Exit codes: 0 done, 1 the node said no (or is not ready), 2 wrong usage, 3 no node answered.

    \b
    Examples:
      brookmq ctl status
      brookmq ctl clients list --search pump
      brookmq ctl publish room/7/light -m on -q 1 -r
      brookmq ctl --help
    """


for command in (
    status,
    clients,
    subscriptions,
    topics,
    retained,
    publish,
    rules,
    schemas,
    tables,
    resources,
    readers,
    data,
    metrics,
    alarms,
    log_level,
):
    ctl.add_command(command)
