"""The connection to the store: what an answer means, and what its absence does."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest
import uvloop

from brookmq.base.errors import OperationError
from brookmq.store.errors import (
    CONFLICT_CODES,
    FULL_CODES,
    UNAVAILABLE_CODES,
    Ambiguous,
    Conflict,
    RecordTooLarge,
    Refused,
    StoreError,
    StoreFull,
    StreamNotFound,
    error_of_answer,
)
from brookmq.store.link import Link, LinkSettings, checked
from tests.store.log_servers import DEADLINE_S, Servers, linked, run, running, until


@pytest.mark.parametrize(
    ("codes", "kind"),
    [
        (CONFLICT_CODES, Conflict),
        (FULL_CODES, StoreFull),
        (UNAVAILABLE_CODES, Ambiguous),
        ({10059}, StreamNotFound),
        ({10054, 10065, 0}, Refused),
    ],
)
def test_codes_become_what_the_caller_does_next(codes: set[int], kind: type[StoreError]) -> None:
    for code in codes:
        error = error_of_answer({"err_code": code, "description": "words"}, "S")
        assert type(error) is kind
        assert isinstance(error, OperationError)
        assert str(error) == f"S: words ({code})"


def test_an_answer_that_is_none_proves_nothing() -> None:
    with pytest.raises(Ambiguous):
        checked(b"not JSON", "S")


def test_an_absent_stream_and_an_absent_listener() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            with pytest.raises(StreamNotFound):
                await link.api("STREAM.INFO.NONE")
            with pytest.raises(Ambiguous, match="nobody answers"):
                await link.request("nobody.here")
            with pytest.raises(RecordTooLarge):
                await link.request("nobody.here", bytes(8 * 1024 * 1024 + 1))
            assert link.record_bytes_max == 8 * 1024 * 1024 - 1024

    with running() as servers:
        run(test(servers))


def test_a_killed_store_is_down_with_a_reason_and_up_again_by_itself() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            turns: list[tuple[bool, str]] = []
            unwatch = link.watch(lambda up, reason: turns.append((up, reason)))
            servers.kill()
            await until(lambda: not link.up, "down")
            assert turns[0][0] is False
            assert link.reason
            with pytest.raises(Ambiguous):
                await link.api("INFO")
            servers.start()
            await until(lambda: link.up, "up")
            assert [up for up, _ in turns] == [False, True]
            assert (await link.api("INFO"))["type"].endswith("account_info_response")
            unwatch()

    with running() as servers:
        run(test(servers))


def test_a_stopped_store_is_noticed_and_its_silence_is_ambiguous() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            servers.freeze()
            try:
                with pytest.raises(Ambiguous, match="no answer within"):
                    await link.api("INFO", time_limit_s=0.3)
                await until(lambda: not link.up, "found out by pings", 6)
            finally:
                servers.thaw()
            await until(lambda: link.up, "up")

    with running() as servers:
        run(test(servers))


def test_an_absent_store_is_said_and_waited_for() -> None:
    async def test(servers: Servers) -> None:
        servers.kill()
        link = Link(LinkSettings(servers.urls, "test"))
        with pytest.raises(Ambiguous, match=r"no connection to the store within 0\.3 s"):
            await link.open(0.3)
        servers.start()
        await until(lambda: link.up, "up")
        await link.close()
        assert (link.up, link.reason) == (False, "closed")

    with running() as servers:
        run(test(servers))


def test_refused_credentials_end_neither_the_link_nor_its_trying() -> None:
    async def test(servers: Servers) -> None:
        right = Link(LinkSettings(servers.urls, "test", user="core", password="right"))
        await right.open(DEADLINE_S)
        link = Link(LinkSettings(servers.urls, "test", user="core", password="wrong"))
        link.begin()
        await until(lambda: "authorization" in link.reason.lower(), "the refusal is told")
        assert not link.up
        await link.close()
        await right.close()
        assert "wrong" not in repr(LinkSettings(servers.urls, "test", user="core", password="wrong"))

    with running(extra='authorization { user: core, password: "right" }') as servers:
        run(test(servers))


def test_a_link_that_the_store_has_ended_is_made_anew() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            turns: list[bool] = []
            link.watch(lambda up, _: turns.append(up))
            with pytest.raises(Ambiguous):  # the server sends an error line for it and closes: the library gives up
                await link.request("a" * 5000, time_limit_s=1)
            await until(lambda: turns == [False, True], "down and up")
            await link.api("INFO")

    with running() as servers:
        run(test(servers))


def test_a_connection_that_ends_in_the_moment_of_a_request_leaves_it_ambiguous() -> None:
    """uvloop says RuntimeError where asyncio says OSError."""

    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            client = link.client
            client._flusher_task.cancel()  # so that it is the request itself that writes
            await asyncio.gather(client._flusher_task, return_exceptions=True)
            client._transport._io_writer.transport.abort()
            with pytest.raises(Ambiguous, match="STREAM"):
                await link.api("STREAM.INFO.NONE")
            await until(lambda: not link.up, "it is noticed")
            await until(lambda: link.up, "it is back")
            with pytest.raises(StreamNotFound):
                await link.api("STREAM.INFO.NONE")

    with running() as servers:
        uvloop.run(test(servers))


def test_closing_leaves_no_task_behind() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await link.api("INFO")
        await until(lambda: len(asyncio.all_tasks()) <= 2, "tasks end")

    with running() as servers:
        run(test(servers))


def test_a_store_that_has_moved_is_found_again() -> None:
    async def test(first: Servers, second: Servers) -> None:
        async with linked(first) as link:
            turns: list[bool] = []
            link.watch(lambda up, _: turns.append(up))
            link.point_to(first.urls)
            assert link.up, "that is where it goes already"
            link.point_to(second.urls)
            assert (link.up, link.reason) == (False, "the store has moved")
            await until(lambda: link.up, "connected there")
            first.kill()
            assert (await link.api("INFO"))["type"].endswith("account_info_response")
            assert turns == [False, True]
            link.point_to(first.urls)  # nobody is there: moved again before it was connected
            link.point_to(second.urls)
            await until(lambda: link.up, "back")
            await link.api("INFO")

    with running() as first, running() as second:
        run(test(first, second))


async def closes_at_any_moment(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chance: random.Random
) -> None:
    """A server that greets, and ends connections soon."""
    with suppress(OSError, TimeoutError):
        writer.write(b'INFO {"server_id":"x","version":"2.12.0","proto":1,"max_payload":1048576,"headers":true}\r\n')
        async with asyncio.timeout(chance.uniform(0.005, 0.1)):
            while data := await reader.read(4096):
                if b"PING" in data:
                    writer.write(b"PONG\r\n")
    writer.transport.abort()


def test_a_link_that_is_closed_while_it_connects_anew_leaves_nothing_behind() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)

    async def test() -> None:
        async with asyncio.timeout(DEADLINE_S):
            server = await asyncio.start_server(
                lambda reader, writer: closes_at_any_moment(reader, writer, chance), "127.0.0.1", 0
            )
            before = asyncio.all_tasks()
            for _ in range(30):
                link = Link(LinkSettings([f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"], "test"))
                link.begin()
                await asyncio.sleep(chance.uniform(0.0, 0.3))
                await link.close()
            server.close()
            names = [task.get_coro().__qualname__ for task in asyncio.all_tasks() - before]  # type: ignore[union-attr]
            assert not [name for name in names if name.startswith(("Client.", "Link."))]

    asyncio.run(test())
