"""The commands of ``brookmq bench``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from brookmq.bench import kept, lifecycle, scenarios, selftest, wave
from brookmq.bench.fleet import Fleet
from brookmq.bench.measure import measure
from brookmq.bench.options import (
    connection_options,
    duration_options,
    kept_option,
    message_options,
    named_options,
    present,
    settings_from,
)
from brookmq.bench.progress import Progress
from brookmq.bench.report import Report

MANY = click.IntRange(1)


@click.group(context_settings={"help_option_names": ["--help"]})
@click.option("--cpu", type=int, help="Run the load tool on this processor only.")
def bench(cpu: int | None) -> None:
    """Load an MQTT broker, any broker, and measure what it does."""
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})


def _run(name: str, given: dict[str, Any], packets_per_write: int, build: Callable[[Fleet], None]) -> None:
    settings = settings_from(given, packets_per_write)

    def load(progress: Progress) -> Report:
        fleet = Fleet(settings)
        build(fleet)
        lifecycle.raise_open_file_limit(len(fleet.clients))
        report = measure(fleet, name, progress)
        if fleet.kept_ids:
            kept.discard(settings, fleet.kept_ids, progress)
        return report

    present(given, name, load)


@bench.command()
@click.option("-n", "--connections", default=1000, show_default=True, type=MANY, help="Held at the same time.")
@click.option("--churn", default=0, help="Instead: connect and disconnect without pause, this many at a time.")
@kept_option
@duration_options
@connection_options
def conn(connections: int, churn: int, **given: Any) -> None:
    """Open connections and hold them, or connect and disconnect without pause."""
    settings = settings_from(given)
    if churn:
        present(given, "conn", lambda progress: lifecycle.churn(settings, churn, progress))
    else:
        present(given, "conn", lambda progress: lifecycle.connections(settings, connections, progress))


@bench.command()
@click.option("-n", "--publishers", default=10, show_default=True, type=MANY)
@click.option(
    "-t",
    "--topic",
    default="bench/%i",
    show_default=True,
    help="%i: the publisher's number; %n: one of --topics numbers, another with every message.",
)
@click.option("--topics", default=1000, show_default=True, type=MANY, help="How many topics %n makes.")
@message_options
@duration_options
@connection_options
def pub(publishers: int, topic: str, topics: int, **given: Any) -> None:
    """Publish, and receive nothing."""
    _run("pub", given, 1, lambda fleet: scenarios.publishers_only(fleet, publishers, topic, topics))


@bench.command()
@click.option("-n", "--subscribers", default=10, show_default=True, type=MANY)
@click.option("-t", "--topic", default="bench/#", show_default=True, help="The filter; %i: the subscriber's number.")
@click.option("-q", "--qos", default=0, show_default=True, type=click.IntRange(0, 2))
@kept_option
@duration_options
@connection_options
def sub(subscribers: int, topic: str, **given: Any) -> None:
    """Subscribe and count what comes, with latencies when `bench pub` on this machine sends it."""
    _run("sub", given, 1, lambda fleet: scenarios.subscribers_only(fleet, subscribers, topic))


@bench.command()
@click.option("-n", "--pairs", "pair_count", default=100, show_default=True, type=MANY)
@kept_option
@message_options
@duration_options
@connection_options
def pairs(pair_count: int, **given: Any) -> None:
    """Pairs of one publisher and one subscriber, each pair with its own topic."""
    _run("pairs", given, 8, lambda fleet: scenarios.pairs(fleet, pair_count))


@bench.command("fan-in")
@click.option("-n", "--publishers", default=50, show_default=True, type=MANY)
@kept_option
@message_options
@duration_options
@connection_options
def fan_in(publishers: int, **given: Any) -> None:
    """Many publishers, one subscriber."""
    _run("fan-in", given, 16, lambda fleet: scenarios.fan_in(fleet, publishers))


@bench.command()
@click.option("-n", "--publishers", default=50, show_default=True, type=MANY)
@kept_option
@message_options
@duration_options
@connection_options
def single(publishers: int, **given: Any) -> None:
    """Many publishers, one subscriber, every packet in a system call of its own.

    A publisher has one message under way unless --outstanding says more, so that packets don't come together in the
    kernel's buffers either.
    """
    given["packets_per_write"] = 1
    given["outstanding"] = given["outstanding"] or 1
    _run("single", given, 1, lambda fleet: scenarios.fan_in(fleet, publishers))


@bench.command("fan-out")
@click.option("-n", "--subscribers", default=100, show_default=True, type=MANY)
@click.option("--publishers", default=1, show_default=True, type=MANY)
@kept_option
@message_options
@duration_options
@connection_options
def fan_out(subscribers: int, publishers: int, **given: Any) -> None:
    """Every message to every subscriber."""
    _run("fan-out", given, 16, lambda fleet: scenarios.fan_out(fleet, subscribers, publishers))


@bench.command()
@click.option("-n", "--publishers", default=50, show_default=True, type=MANY)
@click.option("--members", default=10, show_default=True, type=MANY, help="Members of the shared group.")
@kept_option
@message_options
@duration_options
@connection_options
def shared(publishers: int, members: int, **given: Any) -> None:
    """Every message to one member of a shared group."""
    _run("shared", given, 16, lambda fleet: scenarios.shared(fleet, publishers, members))


@bench.command()
@click.option("-n", "--publishers", default=10, show_default=True, type=MANY)
@click.option("--filters", default=10_000, show_default=True, type=MANY, help="A multiple of 1,000.")
@click.option("--new-topics", is_flag=True, help="Every message on a topic never used before (else: 1,000 topics).")
@kept_option
@message_options
@duration_options
@connection_options
def wildcards(publishers: int, filters: int, new_topics: bool, **given: Any) -> None:
    """Many distinct wildcard filters."""
    _run("wildcards", given, 16, lambda fleet: scenarios.wildcards(fleet, publishers, filters, new_topics=new_topics))


@bench.command()
@click.option("-n", "--client-ids", default=1000, show_default=True, type=MANY)
@click.option("-c", "--takeovers", default=10_000, show_default=True, type=MANY)
@connection_options
def takeover(client_ids: int, takeovers: int, **given: Any) -> None:
    """Clients that push each other out by connecting with the same client id."""
    settings = settings_from(given)
    present(given, "takeover", lambda progress: lifecycle.takeover(settings, client_ids, takeovers, progress))


@bench.command()
@click.option("-n", "--topics", default=10_000, show_default=True, type=MANY, help="Retained messages.")
@click.option("--subscribers", default=10, show_default=True, type=MANY, help="Each gets all of them.")
@click.option("-q", "--qos", default=0, show_default=True, type=click.IntRange(0, 2))
@click.option("-s", "--payload", default=16, show_default=True, type=click.IntRange(1), help="Bytes per message.")
@connection_options
def retained(topics: int, subscribers: int, **given: Any) -> None:
    """Set retained messages, subscribe to all of them, clear them again."""
    settings = settings_from(given)
    present(given, "retained", lambda progress: lifecycle.retained(settings, topics, subscribers, progress))


@bench.command()
@named_options
@click.option(
    "-t",
    "--topic",
    default="bench/%i",
    show_default=True,
    help="The filter; %i: the session's number; %f: the filter's, counted over all sessions.",
)
@click.option("--filters", default=1, show_default=True, type=MANY, help="Filters of each session, with %f in --topic.")
@click.option("-q", "--qos", default=1, show_default=True, type=click.IntRange(0, 2))
@connection_options
def sessions(names: kept.Names, topic: str, filters: int, **given: Any) -> None:
    """Make sessions that wait for messages: connect, subscribe, disconnect.

    They stay until `bench back --discard` ends them, or until they expire.
    """
    settings = settings_from(given)
    present(given, "sessions", lambda progress: kept.make(settings, names, topic, filters, progress))


@bench.command()
@named_options
@click.option("--expect", default=0, help="Messages that wait for them in all; 0: count until none comes for 2 s.")
@click.option("--beside", "rate", default=0.0, help="Messages/s (QoS 1) of unrelated pairs: their latency is reported.")
@click.option("--pairs", "pair_count", default=10, show_default=True, type=MANY, help="Those pairs.")
@click.option("--discard", is_flag=True, help="End the sessions when all of it is over.")
@duration_options
@connection_options
def back(names: kept.Names, expect: int, pair_count: int, discard: bool, **given: Any) -> None:
    """Sessions made by `bench sessions` come back, all at once, and take what has waited for them.

    With --beside, the latency of unrelated messages is measured for the duration before, and during the return.
    """
    settings = settings_from({**given, "qos": 1})

    def load(progress: Progress) -> Report:
        if settings.rate_per_s:
            report = wave.run(settings, names, expect, pair_count, progress)
        else:
            report = kept.back(settings, names, expect, progress)
        if discard:
            kept.discard(settings, names, progress)
        return report

    present(given, "back", load)


@bench.command("self-test")
@click.option("-d", "--duration", default=3.0, show_default=True, type=click.FloatRange(0.1), help="Seconds per load.")
@click.option("--json", "as_json", is_flag=True, help="Print the reports as JSON.")
def self_test(duration: float, as_json: bool) -> None:
    """Load a null broker: what the tool itself can do on this machine."""
    raise SystemExit(selftest.run(duration, as_json=as_json))
