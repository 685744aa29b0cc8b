"""Readers of the journal at a real store: they read its records, and can do nothing else there."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats
import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from brookmq.base.errors import OperationError
from brookmq.store import folder as folder_module
from brookmq.store import settings_file
from brookmq.store.binary import find_binary
from brookmq.store.journal.journal import JournalSettings
from brookmq.store.journal.seeking import stream_name
from brookmq.store.link import Link, LinkSettings
from brookmq.store.probe import Probe
from brookmq.store.readers import LIFETIME_S, Readers
from brookmq.store.server import StoreServer
from brookmq.store.settings_file import READER_INBOX, SHARDS_MAX, Credentials, ServerSettings, write_settings
from brookmq.store.streams import look
from tests.store.journal.reading_servers import append, group, journal_over
from tests.store.supervising import PATIENCE_SECONDS, connected, running, until


@asynccontextmanager
async def reader(store: StoreServer, credentials: Credentials) -> AsyncIterator[tuple[Client, list[str]]]:
    """A client as a reader makes it, and what the store complained about."""
    complaints: list[str] = []

    async def complain(error: Exception) -> None:
        complaints.append(str(error))

    client = await nats.connect(
        store.addresses,
        user=credentials.user,
        password=credentials.password,
        inbox_prefix=READER_INBOX.encode(),
        allow_reconnect=False,
        error_cb=complain,
    )
    try:
        yield client, complaints
    finally:
        await client.close()


async def refused(store: StoreServer, credentials: Credentials) -> None:
    stranger = Probe(store.addresses, credentials)
    _, reason, _ = await stranger.ask()
    await stranger.close()
    assert "Authorization Violation" in reason


async def records(client: Client, stream: str, query: dict[str, Any]) -> list[Msg]:
    """The answers to a batch get, its status included."""
    answers: list[Msg] = []
    inbox = client.new_inbox()

    async def take(message: Msg) -> None:
        answers.append(message)

    subscription = await client.subscribe(inbox, cb=take)
    await client.publish(f"$JS.API.DIRECT.GET.{stream}", json.dumps(query).encode(), inbox)
    await until(lambda: answers and "Status" in (answers[-1].headers or {}), "the answer is whole")
    await subscription.unsubscribe()
    return answers


@asynccontextmanager
async def filled(store: StoreServer) -> AsyncIterator[Link]:
    """A journal of two shards with a batch each, and a stream that is nobody's business."""
    assert store.credentials is not None
    link = Link(LinkSettings(store.addresses, "test", *store.credentials))
    await link.open()
    try:
        async with journal_over(link, JournalSettings(shards=2)) as journal:
            for shard in range(2):
                await append(journal, [group(b"%08d" % shard)], shard)
            await link.api(
                "STREAM.CREATE.SESSIONS", {"name": "SESSIONS", "subjects": ["sessions"], "allow_direct": True}
            )
            yield link
    finally:
        await link.close()


async def test_a_reader_reads_the_journal_and_can_do_nothing_else(tmp_path: Path) -> None:
    async with running(tmp_path) as (store, told), filled(store) as link:
        readers = Readers(store.admit, lambda: 0.0)
        credentials, expires_at = await readers.grant()
        assert expires_at == LIFETIME_S
        before = {name: await link.api(f"STREAM.INFO.{name}") for name in ("JOURNAL_0", "JOURNAL_1", "SESSIONS")}
        async with reader(store, credentials) as (client, complaints):
            for shard in range(2):
                *found, status = await records(client, stream_name(shard), {"seq": 1, "batch": 100})
                assert any(b"%08d" % shard in message.data for message in found)
                assert status.headers is not None
                assert status.headers["Status"] == "204"

            # What it may not: each is refused by the store, or reaches nobody.
            for subject in (
                "journal_0", "sessions", "$JS.API.STREAM.INFO.SESSIONS", "$JS.API.STREAM.INFO.JOURNAL_0",
                "$JS.API.STREAM.NAMES", "$JS.API.STREAM.PURGE.JOURNAL_0", "$JS.API.STREAM.DELETE.JOURNAL_0",
                "$JS.API.STREAM.MSG.GET.SESSIONS", "$JS.API.CONSUMER.CREATE.JOURNAL_0", "$JS.API.INFO",
                "$JS.API.DIRECT.GET.SESSIONS", "$SYS.REQ.SERVER.PING",
            ):  # fmt: skip
                with pytest.raises((nats.errors.TimeoutError, nats.errors.NoRespondersError)):
                    await client.request(subject, b"{}", timeout=0.1)
            complained = len(complaints)
            for subject in (">", "journal_0", "_INBOX.>", "$SYS.>", "_R_.>"):
                await client.subscribe(subject, cb=_never)
            await until(lambda: len(complaints) >= complained + 5, "all subscriptions are refused")
            # The answer of a direct get goes where the reader says. As the node's own user would, it says: into a
            # stream. What comes of it, in the order of one connection, is nothing.
            for stream, target in (("JOURNAL_0", "journal_0"), ("JOURNAL_0", "journal_1"), ("JOURNAL_1", "sessions")):
                await client.publish(f"$JS.API.DIRECT.GET.{stream}", b'{"seq": 1}', target)
                await client.publish(f"$JS.API.DIRECT.GET.{stream}", b'{"seq": 1, "batch": 2}', target)
            assert len(await records(client, "JOURNAL_0", {"seq": 1, "batch": 100})) > 1
        for name, info in before.items():
            assert (await link.api(f"STREAM.INFO.{name}"))["state"] == info["state"]
        assert link.up
        assert told.story == ["ready"]
        await readers.close()


async def _never(message: Msg) -> None:
    raise AssertionError(f"a reader got {message.subject}")


async def test_the_nodes_own_user_could_do_that_harm(tmp_path: Path) -> None:
    """Why readers have an account of their own: the attack above is a real one."""
    async with running(tmp_path) as (store, _), filled(store) as link, connected(store) as client:
        last = (await look(link, "SESSIONS")).last_sequence
        await client.publish("$JS.API.DIRECT.GET.JOURNAL_0", b'{"seq": 1}', "sessions")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await look(link, "SESSIONS")).last_sequence == last:  # noqa: ASYNC110 - asking is all there is
                await asyncio.sleep(0.01)


async def test_two_passwords_at_a_time_for_an_hour_each(tmp_path: Path) -> None:
    now = 1000.0
    async with running(tmp_path) as (store, told), filled(store) as link:
        readers = Readers(store.admit, lambda: now)
        first = await readers.grant()
        assert await readers.grant() == first
        now += LIFETIME_S / 2
        second = await readers.grant()
        assert second.expires_at == now + LIFETIME_S
        async with reader(store, first.credentials) as (_, _), reader(store, second.credentials) as (held, _):
            now += LIFETIME_S / 2
            third = await readers.grant()
            assert len({grant.credentials for grant in (first, second, third)}) == 3
            await refused(store, first.credentials)
            assert len(await records(held, "JOURNAL_0", {"seq": 1, "batch": 9})) > 1, "it goes on"
        assert link.up, "the node's own connections are not touched"
        assert told.story == ["ready"]
        await readers.close()


async def test_a_password_ends_by_itself(tmp_path: Path) -> None:
    async with running(tmp_path) as (store, _):
        loop = asyncio.get_running_loop()
        readers = Readers(store.admit, loop.time, lifetime_s=0.5)
        granted = await readers.grant()
        async with reader(store, granted.credentials) as (client, _):
            await until(lambda: client.is_closed, "the store has ended it")
        await until(lambda: readers._ending is None, "nothing is left to do")
        assert granted.credentials.password not in (tmp_path / "store" / "nats.conf").read_text()
        await readers.close()


async def test_a_store_that_was_killed_still_knows_them_and_a_new_node_does_not(tmp_path: Path) -> None:
    async with running(tmp_path) as (store, _):
        readers = Readers(store.admit, lambda: 0.0)
        credentials, _ = await readers.grant()
        assert store._process is not None
        store._process.kill()
        await until(lambda: not store.ready, "the death is noticed")
        await until(lambda: store.ready, "it is back")
        async with reader(store, credentials):
            pass
        await readers.close()
    async with running(tmp_path) as (store, _):
        await refused(store, credentials)


async def test_a_store_that_is_not_there_is_an_error() -> None:
    told: list[Sequence[Credentials]] = []

    async def admit(readers: Sequence[Credentials]) -> None:
        told.append(readers)
        raise OperationError("the store is starting")

    readers = Readers(admit, lambda: 0.0)
    for _ in range(2):
        with pytest.raises(OperationError, match="starting"):
            await readers.grant()
    assert [len(each) for each in told] == [1, 1], "what the store was not told is forgotten"
    await readers.close()


def test_settings_with_readers_do_for_a_start_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ServerSettings("n", tmp_path, tmp_path, Credentials("core", "x"))
    path, binary = tmp_path / "nats.conf", find_binary(None)
    with_reader = settings_file.render(
        ServerSettings("n", tmp_path, tmp_path, Credentials("core", "x"), readers=(Credentials("reader-1", "y"),))
    )
    folder_module.write_file(path, with_reader)

    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(settings_file, "write_file", full)
        write_settings(path, settings, binary)
        assert path.read_text() == with_reader
        with pytest.raises(OSError, match="No space"):
            write_settings(path, ServerSettings("other", tmp_path, tmp_path, Credentials("core", "x")), binary)
    write_settings(path, settings, binary)
    assert "reader-1" not in path.read_text()


def test_all_shards_that_a_journal_can_have_are_readable(tmp_path: Path) -> None:
    text = settings_file.render(ServerSettings("n", tmp_path, tmp_path, Credentials("core", "x")))
    for shard in range(SHARDS_MAX):
        assert text.count(f'"$JS.API.DIRECT.GET.{stream_name(shard)}"') == 2
