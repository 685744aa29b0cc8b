"""Streams: declared again and again, changed in their limits, never named by a client."""

from __future__ import annotations

import dataclasses

import pytest

from brookmq.base.errors import CallerError
from brookmq.store.errors import Refused, StoreError, StreamNotFound
from brookmq.store.streams import Stream, StreamState, declare, look, purge, remove
from tests.store.log_servers import Servers, linked, run, running

JOURNAL = Stream(name="JOURNAL_0", subjects=("journal.0", "journal.0.index"), max_age_s=600, max_bytes=10_000_000)


@pytest.mark.parametrize("name", ["", "journal", "A.B", "A B", "A/B", "A*", "Ü", "A" * 33])
def test_names_are_ours(name: str) -> None:
    with pytest.raises(CallerError):
        Stream(name=name, subjects=("s",))


@pytest.mark.parametrize("subject", ["", "A", "a b", "a..b", ".a", "a.", "a/b", "$JS.API", "a.+", "a" * 33, ">", "a.é"])
def test_subjects_are_ours(subject: str) -> None:
    with pytest.raises(CallerError):
        Stream(name="S", subjects=(subject,))


def test_declaring_is_idempotent_and_changes_limits() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            state = await declare(link, JOURNAL)
            assert state == StreamState(1, 0, 0, 0, "", 1, 600, 10_000_000)
            await link.request("journal.0", b"one")
            assert (await declare(link, JOURNAL)).records == 1
            changed = dataclasses.replace(JOURNAL, max_age_s=None, max_bytes=20_000_000, subjects=("journal.0",))
            state = await declare(link, changed)
            assert (state.max_age_s, state.max_bytes, state.records) == (None, 20_000_000, 1)
            raw = await link.api("STREAM.INFO.JOURNAL_0")
            assert raw["config"]["storage"] == "file"
            assert raw["config"]["allow_direct"] is True
            assert raw["config"]["subjects"] == ["journal.0"]

    with running() as servers:
        run(test(servers))


def test_an_empty_stream_keeps_its_place_and_a_removed_one_is_gone() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await declare(link, JOURNAL)
            for _ in range(5):
                await link.request("journal.0", b"x")
            assert await purge(link, "JOURNAL_0", 4) == 3
            state = await look(link, "JOURNAL_0")
            assert (state.first_sequence, state.last_sequence, state.records) == (4, 5, 2)
            await purge(link, "JOURNAL_0", 6)
            state = await look(link, "JOURNAL_0")
            assert (state.first_sequence, state.last_sequence, state.records) == (6, 5, 0)
            await remove(link, "JOURNAL_0")
            with pytest.raises(StreamNotFound):
                await look(link, "JOURNAL_0")

    with running() as servers:
        run(test(servers))


def test_what_cannot_be_declared_is_said() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            with pytest.raises(Refused) as refused:
                await declare(link, dataclasses.replace(JOURNAL, replicas=3))
            assert refused.value.code == 10074
            await link.api("STREAM.CREATE.M", {"name": "M", "subjects": ["m"], "storage": "memory"})
            with pytest.raises(StoreError, match="not kept on disk"):
                await declare(link, Stream(name="M", subjects=("m",)))

    with running() as servers:
        run(test(servers))
