"""A log with futures as a function with a callback, and a shard over a real store."""

from __future__ import annotations

import asyncio
import time
from typing import cast

import pytest

from brookmq.store.errors import Deposed, NotOwner, QueueFull, RecordTooLarge, StoreError
from brookmq.store.journal.batch import Batch, decode_batch
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.journal.log_appender import LogAppender
from brookmq.store.journal.shard import Shard
from brookmq.store.log import AppendLog
from brookmq.store.reader import Reader
from brookmq.store.record import CALLER_KIND_MIN, DATA, HEADER_BYTES, decode_header
from brookmq.store.streams import Stream
from tests.store.journal.groups import facts, run_group
from tests.store.journal.shard_world import NamedTicket
from tests.store.log_servers import Servers, declared, linked, run, running, until

STREAM = Stream(name="JOURNAL_0", subjects=("journal_0", "journal_0.>"))


class ScriptedLog:
    """An ``AppendLog`` that answers as it is told."""

    stream = "JOURNAL_0"

    def __init__(self) -> None:
        self.refusal: Exception | None = None
        self.given: list[tuple[bytes, int, str]] = []
        self.future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def append(self, body: bytes, *, kind: int = DATA, subject: str = "") -> asyncio.Future[int]:
        if self.refusal is not None:
            raise self.refusal
        self.given.append((body, kind, subject))
        return self.future


async def turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def appender_of(log: ScriptedLog) -> LogAppender:
    return LogAppender(cast("AppendLog", log))


async def test_the_sequence_is_the_answer() -> None:
    log, answers = ScriptedLog(), list[int | StoreError]()
    appender_of(log).append(b"body", answers.append, CALLER_KIND_MIN, "journal_0.index.7")
    assert log.given == [(b"body", CALLER_KIND_MIN, "journal_0.index.7")]
    await turn()
    assert answers == []
    log.future.set_result(17)
    await turn()
    assert answers == [17]


@pytest.mark.parametrize("error", [NotOwner("not here"), Deposed("another"), QueueFull("full")])
async def test_what_is_refused_at_once_is_answered_later(error: StoreError) -> None:
    log, answers = ScriptedLog(), list[int | StoreError]()
    log.refusal = error
    appender_of(log).append(b"body", answers.append)
    assert answers == []
    await turn()
    assert answers == [error]


async def test_an_end_of_the_log_is_the_answer() -> None:
    log, answers = ScriptedLog(), list[int | StoreError]()
    appender_of(log).append(b"body", answers.append)
    error = Deposed("another")
    log.future.set_exception(error)
    await turn()
    assert answers == [error]


async def test_too_large_and_cancelled_are_answers_too() -> None:
    log, answers = ScriptedLog(), list[int | StoreError]()
    log.refusal = RecordTooLarge("9 MB")
    appender_of(log).append(b"body", answers.append)
    log.refusal = None
    appender_of(log).append(b"body", answers.append)
    log.future.cancel()
    await turn()
    assert [type(answer) for answer in answers] == [StoreError, NotOwner]


async def over_a_store(servers: Servers) -> None:
    story: list[tuple[object, ...]] = []
    stored: list[Batch] = []
    async with linked(servers) as link:
        await declared(link, STREAM)
        log = AppendLog(link, STREAM.name, "journal_0", time_limit_s=1.0)
        await log.seize()
        loop = asyncio.get_running_loop()
        appender = LogAppender(log)
        limits = ShardLimits(linger_s=0.001, batch_bytes=10_000)
        shard = Shard(0, appender.append, loop.call_later, time.monotonic, stored.append, limits)
        given = []
        for number in range(300):
            group = run_group(b"t/%d" % number, 1 + number % 7, bytes(number * 10), client_id=f"c{number}")
            given.append(group)
            shard.add(group, NamedTicket(story, number))
            if number % 10 == 0:
                await asyncio.sleep(0)
            if number == 150:  # what was sent and not answered must not be there twice, nor be missing
                servers.kill()
                servers.start()
        await until(lambda: shard.pending_bytes == 0, "all stored")
        assert story == [(number, 0) for number in range(300)]
        shard.check_invariants()
        found = [
            decode_batch(0, sequence, record[HEADER_BYTES:])
            async for sequence, record in Reader(link, STREAM.name, time_limit_s=10).read()
            if decode_header(record, sequence).kind == DATA
        ]
        assert [facts(group) for batch in found for group in batch.groups] == [facts(group) for group in given]
        assert [(batch.base, batch.sequence) for batch in found] == [(batch.base, batch.sequence) for batch in stored]
        assert found[-1].end == shard.stored == sum(group.count for group in given)

        await log.leave()
        shard.add(run_group(), NamedTicket(story, "late"))
        await until(lambda: shard.failed is not None, "the shard hears of it")
        assert isinstance(shard.failed, NotOwner)
        assert story[-1] == ("late", 0x97)


@pytest.mark.long  # a real server, started and killed
def test_a_shard_over_a_store_that_is_killed() -> None:
    with running() as servers:
        run(over_a_store(servers))
