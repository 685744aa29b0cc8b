"""The options that the commands of the load tool share, and how they become ``Settings``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

import click
from rich.console import Console
from rich.table import Table

from brookmq.bench.kept import Names
from brookmq.bench.progress import Progress
from brookmq.bench.report import Report
from brookmq.bench.settings import LoadError, Settings
from brookmq.bench.transport import Target

Command = TypeVar("Command", bound=Callable[..., Any])

VERSIONS: Final = {"3.1": 3, "3.1.1": 4, "5": 5}

_CONNECTION: Final = (
    click.option("-h", "--host", default="127.0.0.1", show_default=True, help="The broker's address."),
    click.option("-p", "--port", default=1883, show_default=True, type=click.IntRange(1, 65535), help="Its port."),
    click.option("--tls", is_flag=True, help="Speak TLS."),
    click.option("--ws", is_flag=True, help="Speak WebSocket (with --tls: secure WebSocket)."),
    click.option("--ws-path", default="/mqtt", show_default=True, help="The path of the WebSocket listener."),
    click.option("--ca-file", type=click.Path(exists=True), help="Check the broker's certificate against this."),
    click.option("-V", "--mqtt-version", type=click.Choice(list(VERSIONS)), default="3.1.1", show_default=True),
    click.option("--user", help="User name."),
    click.option("--password", help="Password."),
    click.option("--keep-alive", default=300, show_default=True, type=click.IntRange(0, 65535), help="Seconds."),
    click.option("--connect-rate", default=0.0, help="New connections per second; 0: as fast as they are accepted."),
    click.option("--prefix", default="bench", show_default=True, help="First level of all topics."),
    click.option("--broker-pid", multiple=True, type=int, help="Add up what this process and its children use."),
    click.option("--json", "as_json", is_flag=True, help="Print the report as JSON."),
    click.option("--quiet", is_flag=True, help="No progress."),
)

_DURATION: Final = (
    click.option(
        "-d", "--duration", default=5.0, show_default=True, type=click.FloatRange(0.1), help="Measured seconds."
    ),
    click.option("--warm-up", default=1.0, show_default=True, type=click.FloatRange(0.0), help="Seconds before that."),
)

_MESSAGES: Final = (
    click.option("-q", "--qos", default=0, show_default=True, type=click.IntRange(0, 2)),
    click.option("-s", "--payload", default=16, show_default=True, type=click.IntRange(0), help="Bytes per message."),
    click.option("-r", "--rate", default=0.0, help="Messages/s of all publishers together; 0: as fast as possible."),
    click.option(
        "-w", "--window", default=20, show_default=True, type=click.IntRange(1, 65535), help="In flight (QoS 1, 2)."
    ),
    click.option(
        "--packets-per-write", default=None, type=click.IntRange(1), help="PUBLISH packets in one system call."
    ),
    click.option("--outstanding", default=0, help="Messages under way per publisher; 0: four writes or windows."),
    click.option("-c", "--count", default=0, help="Messages of each publisher, instead of a duration."),
)

_KEPT: Final = (
    click.option(
        "--session", is_flag=True, help="Sessions of who receives outlive the connection (clean start off, expiry 1 h)."
    ),
)

_NAMED: Final = (
    click.option("-n", "--sessions", "count", default=100, show_default=True, type=click.IntRange(1)),
    click.option("--first", default=0, show_default=True, type=click.IntRange(0), help="Number of the first of them."),
    click.option(
        "--client-id", default="bench-session-%i", show_default=True, help="Their client ids; %i: the number."
    ),
)


def _apply(options: tuple[Callable[[Any], Any], ...], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def connection_options(command: Command) -> Command:
    return _apply(_CONNECTION, command)


def duration_options(command: Command) -> Command:
    return _apply(_DURATION, command)


def message_options(command: Command) -> Command:
    return _apply(_MESSAGES, command)


def kept_option(command: Command) -> Command:
    return _apply(_KEPT, command)


def named_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that name a range of sessions; the command gets them as ``names``."""

    @wraps(command)
    def with_names(*, count: int, first: int, client_id: str, **given: Any) -> Any:
        return command(names=Names(client_id, count, first), **given)

    return _apply(_NAMED, with_names)


def settings_from(given: dict[str, Any], packets_per_write: int = 0) -> Settings:
    """``packets_per_write`` is the scenario's own number, where the user gives none."""
    asked = given.get("packets_per_write")
    return Settings(
        Target(given["host"], given["port"], given["tls"], given["ws"], given["ws_path"], given["ca_file"]),
        version=VERSIONS[given["mqtt_version"]],
        qos=given.get("qos", 0),
        payload_bytes=given.get("payload", 16),
        rate_per_s=given.get("rate", 0.0),
        window=given.get("window", 20),
        packets_per_write=asked or (0 if given.get("qos") or given.get("rate") else packets_per_write),
        outstanding=given.get("outstanding", 0),
        duration_s=given.get("duration", 5.0),
        warm_up_s=given.get("warm_up", 1.0),
        count=given.get("count", 0),
        connect_rate_per_s=given["connect_rate"],
        keep_alive_s=given["keep_alive"],
        kept=given.get("session", False),
        user=given["user"],
        password=given["password"],
        prefix=given["prefix"],
        broker_pids=given["broker_pid"],
    )


def present(given: dict[str, Any], title: str, load: Callable[[Progress], Report]) -> Report:
    """Run a load and print its report; exit code 1 with one line when it could not be brought up."""
    progress = Progress(title, wanted=not (given["as_json"] or given["quiet"]))
    try:
        report = load(progress)
    except (LoadError, OSError) as error:
        progress.close()
        click.echo(f"bench: {error}", err=True)
        sys.exit(1)
    if given["as_json"]:
        click.echo(json.dumps(report.as_json()))
    else:
        print_report(report)
    return report


def print_report(report: Report) -> None:
    if not sys.stdout.isatty():
        for label, value in [("scenario", report.scenario), *report.rows()]:
            click.echo(f"{label}: {value}")
        return
    table = Table(title=report.scenario, show_header=False, title_justify="left")
    for label, value in report.rows():
        table.add_row(label, value)
    Console().print(table)
