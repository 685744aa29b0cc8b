"""The scenarios about what is kept: each runs its steps against one broker and gives its figures.

All of them check on the way that nothing is lost: messages that were acknowledged while a session was away have to come
when it is back, or the round fails.
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable
from statistics import median
from typing import Final

from bench.brokers import BrokerError, Running
from bench.session_states import CLIENT_ID, fill_with_sessions
from bench.stage import Figures, Stage, bytes_on_disk, metric
from brookmq.bench import packets

AWAY_SESSIONS: Final = 100
PAIRS: Final = 100
GROWTH_RATE_PER_S: Final = 1_000
DRAINED_MESSAGES: Final = 100_000
WAVE_SESSIONS: Final = 10_000
WAVE_MESSAGES: Final = 100_000
WAVE_BESIDE_PER_S: Final = 1_000
WAVE_P99_FACTOR: Final = 3.0
WAVE_P99_MS: Final = 20.0
NEEDLES: Final = 10
HAY_MESSAGES: Final = 10_000_000
HAY_FILTERS: Final = 100_000
HAY_SESSIONS: Final = 100
HAY_PUBLISHERS: Final = 50
HAY_WINDOW: Final = 200
"""As much under way as fills batches: this is about reading, and ten million are to be written in a minute or two."""
STORED_SESSIONS: Final = (10_000, 1_000_000)
STARTS: Final = 3
LONG_S: Final = 900.0

Procedure = Callable[[Stage], Figures]


def away(stage: Stage) -> Figures:
    """QoS 1 from 100 publishers to 100 sessions that are away; then they come back and have to get all of it."""
    with stage.start() as running:
        stage.tool(running, "sessions", "-n", AWAY_SESSIONS, "--topic", "bench/away/%i")
        publish = ("pub", "-n", AWAY_SESSIONS, "--topic", "bench/away/%i", "--qos", 1)
        sent = stage.tool(running, *publish, *stage.timed())
        back = stage.tool(running, "back", "-n", AWAY_SESSIONS, "--expect", sent["sent"])
    return {
        "messages_per_s": sent["messages_per_s"],
        "cpu_us": sent["broker_cpu_us_per_message"],
        "tool_busy": sent["tool_busy"],
        "drained_per_s": back["messages_per_s"],
    }


def kept(stage: Stage, qos: int) -> Figures:
    """Pairs at full speed, first with sessions that end with their connection, then with kept ones."""
    with stage.start() as running:
        pairs = ("pairs", "-n", PAIRS, "--qos", qos, *stage.timed())
        transient = stage.tool(running, *pairs)
        persistent = stage.tool(running, *pairs, "--session")
    transient_us, kept_us = (report["broker_cpu_us_per_message"] for report in (transient, persistent))
    return {
        "transient_us": transient_us,
        "kept_us": kept_us,
        "extra_us": kept_us - transient_us,
        "messages_per_s": persistent["messages_per_s"],
    }


def growth(stage: Stage) -> Figures:
    """Single small messages to connected kept sessions, at a rate at which hardly any two share a batch."""
    with stage.start() as running:
        before = [bytes_on_disk(running.folder, stream) for stream in ("journal", "sessions")]
        load = ("pairs", "-n", 10, "--qos", 1, "--rate", GROWTH_RATE_PER_S, "--session")
        report = stage.tool(running, *load, *stage.timed())
        after = [bytes_on_disk(running.folder, stream) for stream in ("journal", "sessions")]
    journal, sessions = ((new - old) / report["sent"] for new, old in zip(after, before, strict=True))
    if not journal:
        raise BrokerError("the journal has not grown: were these messages kept at all?")
    return {
        "journal_bytes_per_message": journal,
        "sessions_bytes_per_message": sessions,
        "p99_ms": report["latency_ms"]["p99"],
        "cpu_us": report["broker_cpu_us_per_message"],
    }


def drain(stage: Stage) -> Figures:
    """Two sessions with a long queue each: one comes back at once, the other after a restart of the broker."""
    count = stage.size(DRAINED_MESSAGES, multiple_of=50)
    with stage.folder() as folder:
        with stage.start(folder) as running:
            stage.tool(running, "sessions", "-n", 2, "--topic", "bench/drain/#")
            stage.tool(running, "pub", "-n", 50, "--topic", "bench/drain/%i", "--qos", 1, "--count", count // 50)
            warm = stage.tool(running, "back", "-n", 1, "--expect", count)
        with stage.start(folder) as running:
            cold = stage.tool(running, "back", "-n", 1, "--first", 1, "--expect", count)
    return {
        "drained_per_s": warm["messages_per_s"],
        "drained_cpu_us": warm["broker_cpu_us_per_message"],
        "drained_after_restart_per_s": cold["messages_per_s"],
    }


def wave(stage: Stage) -> Figures:
    """Thousands of sessions come back at once, each with some messages, beside traffic of others."""
    sessions, messages = stage.size(WAVE_SESSIONS, 10), stage.size(WAVE_MESSAGES, 100)
    with stage.start() as running:
        stage.tool(running, "sessions", "-n", sessions, "--topic", "bench/wave/%f")
        topics = ("--topic", "bench/wave/%n", "--topics", sessions)
        stage.tool(running, "pub", "-n", 10, *topics, "--qos", 1, "--count", messages // 10)
        beside = ("--beside", WAVE_BESIDE_PER_S, *stage.timed())
        report = stage.tool(running, "back", "-n", sessions, "--expect", messages, *beside)
    quiet_ms, wave_ms = report["quiet_latency_ms"]["p99"], report["latency_ms"]["p99"]
    return {
        "quiet_p99_ms": quiet_ms,
        "wave_p99_ms": wave_ms,
        "wave_max_ms": report["latency_ms"]["max"],
        "wave_p99_of_allowed": wave_ms / max(WAVE_P99_FACTOR * quiet_ms, WAVE_P99_MS),
        "wave_s": report["duration_s"],
        "wave_tried_again": report["connects_failed"],
    }


def needles(stage: Stage) -> Figures:
    """Two sessions miss the same ten messages among millions for others; one returns now, one after a restart."""
    hay, filters = stage.size(HAY_MESSAGES, HAY_PUBLISHERS * NEEDLES), stage.size(HAY_FILTERS, HAY_SESSIONS)
    with stage.folder() as folder:
        with stage.start(folder) as running:
            each = ("--filters", filters // HAY_SESSIONS)
            stage.tool(running, "sessions", "-n", HAY_SESSIONS, *each, "--topic", "bench/hay/%f")
            stage.tool(running, "sessions", "-n", 2, "--client-id", "bench-needle-%i", "--topic", "bench/needle")
            for _ in range(NEEDLES):
                topics = ("--topic", "bench/hay/%n", "--topics", filters)
                publish = ("pub", "-n", HAY_PUBLISHERS, "--window", HAY_WINDOW, *topics, "--qos", 1)
                sent = stage.tool(running, *publish, "--count", hay // HAY_PUBLISHERS // NEEDLES, timeout_s=LONG_S)
                stage.tool(running, "pub", "-n", 1, "--topic", "bench/needle", "--qos", 1, "--count", 1)
            now = _needle_back(stage, running, 0)
        with stage.start(folder) as running:
            later = _needle_back(stage, running, 1)
    return {
        "back_s": now["back_s"],
        "read_percent": now["read_percent"],
        "back_after_restart_s": later["back_s"],
        "read_percent_after_restart": later["read_percent"],
        "journal_bytes": later["journal_bytes"],
        "hay_per_s": sent["messages_per_s"],
    }


def _needle_back(stage: Stage, running: Running, number: int) -> Figures:
    before = metric(running, "brookmq_journal_bytes_read_total")
    back = ("back", "-n", 1, "--client-id", "bench-needle-%i", "--first", number, "--expect", NEEDLES)
    report = stage.tool(running, *back)
    read = metric(running, "brookmq_journal_bytes_read_total") - before
    journal = bytes_on_disk(running.folder, "journal")
    return {"back_s": report["duration_s"], "read_percent": 100 * read / journal, "journal_bytes": journal}


def start(stage: Stage) -> Figures:
    """Start of a node with few and with many stored sessions, in turn; a stored session connects at the ready line."""
    few, many = (stage.size(count) for count in STORED_SESSIONS)
    ready: dict[int, list[float]] = {few: [], many: []}
    answered: dict[int, list[float]] = {few: [], many: []}
    with stage.folder() as place:
        for count in (few, many):
            fill_with_sessions(place / str(count), count)
        for _ in range(STARTS):
            for count in (few, many):
                with stage.start(place / str(count)) as running:
                    _connect_stored(running, CLIENT_ID.format(random.randrange(count)))
                    answered[count].append(time.monotonic() - running.ready_at)
                    ready[count].append(running.start_s)
        size = bytes_on_disk(place / str(many), "sessions")
    return {
        "ready_few_s": median(ready[few]),
        "ready_many_s": median(ready[many]),
        "ready_growth": median(ready[many]) / median(ready[few]),
        "first_connect_s": max(answered[many]),
        "sessions_bytes": size,
    }


def _connect_stored(running: Running, client_id: str) -> None:
    """A CONNECT of a client whose session has to be there."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as sock:
        sock.sendall(packets.connect(client_id, 4, clean=False))
        answer = sock.recv(64)
        sock.sendall(packets.DISCONNECT)
    if answer[:2] != b"\x20\x02" or answer[3]:
        raise BrokerError(f"{client_id} was answered with {answer.hex(' ')}")
    if answer[2] != 1:
        raise BrokerError(f"the session of {client_id} was not there")
