"""A store that was killed between a stream's settings and their checksum: with and without mending."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from brookmq.store import server as server_module
from brookmq.store.errors import StoreError
from brookmq.store.journal.recovery import shard_count
from brookmq.store.link import Link, LinkSettings
from brookmq.store.mending import checksum_of, mend_streams
from brookmq.store.server import StoreServer
from brookmq.store.streams import Stream, declare, look, remove, stream_names
from tests.store.supervising import running


async def linked(store: StoreServer) -> Link:
    assert store.credentials is not None
    link = Link(LinkSettings(store.addresses, "test", *store.credentials))
    await link.open()
    return link


def files(path: Path) -> list[Path]:
    return sorted(path.glob("store/jetstream/*/streams/*/meta.inf"))


async def test_the_checksum_is_the_servers_for_every_length(tmp_path: Path) -> None:
    async with running(tmp_path) as (store, _):
        link = await linked(store)
        for number in range(1, 32):  # one byte more each
            await declare(link, Stream(name="N" * number, subjects=("n" * number,)))
        await link.close()
    lengths = set()
    for settings in files(tmp_path):
        body = settings.read_bytes()
        lengths.add(len(body) % 32)
        assert checksum_of(json.loads(body)["name"], body) == settings.with_name("meta.sum").read_text()
    assert len(files(tmp_path)) == 31
    print(sorted(lengths))
    assert len(lengths) > 12
    assert any(length < 16 for length in lengths)
    assert mend_streams(tmp_path / "store") == []


@pytest.mark.parametrize("mending", [True, False])
async def test_a_stream_whose_checksum_is_old_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mending: bool
) -> None:
    async with running(tmp_path) as (store, _):
        link = await linked(store)
        await declare(link, Stream(name="KEPT", subjects=("kept",)))
        await link.request("kept", b"1")
        await link.close()
    (settings,) = files(tmp_path)
    settings.with_name("meta.sum").write_text("0123456789abcdef")
    if not mending:  # what the server does by itself
        monkeypatch.setattr(server_module, "mend_streams", lambda path: [])
    async with running(tmp_path) as (store, _):
        link = await linked(store)
        if mending:
            assert (await look(link, "KEPT")).records == 1
        else:
            assert await stream_names(link) == []
        await link.close()


def test_files_that_are_no_settings_are_left_alone(tmp_path: Path) -> None:
    for name, text in (("A", ""), ("B", "[]"), ("C", "{}")):
        folder = tmp_path / "jetstream" / "X" / "streams" / name
        folder.mkdir(parents=True)
        (folder / "meta.inf").write_text(text)
    assert mend_streams(tmp_path) == []
    assert mend_streams(tmp_path / "nothing") == []
    assert not list(tmp_path.rglob("meta.sum"))


async def test_a_journal_with_a_hole_is_not_opened_as_a_smaller_one(tmp_path: Path) -> None:
    async with running(tmp_path) as (store, _):
        link = await linked(store)
        for number in range(4):
            await declare(link, Stream(name=f"JOURNAL_{number}", subjects=(f"journal_{number}",)))
        assert await shard_count(link, 2) == 4
        await remove(link, "JOURNAL_2")
        with pytest.raises(StoreError, match="lost its stream JOURNAL_2: JOURNAL_3 is there"):
            await shard_count(link, 4)
        await link.close()


async def test_a_stream_that_is_as_wanted_is_not_written_again(tmp_path: Path) -> None:
    async with running(tmp_path) as (store, _):
        link = await linked(store)
        stream = Stream(name="KEPT", subjects=("kept",), max_age_s=60.0)
        await declare(link, stream)
        config = (await link.api("STREAM.INFO.KEPT"))["config"]
        config["metadata"]["ours"] = "x"
        await link.api("STREAM.UPDATE.KEPT", config)
        (settings,) = files(tmp_path)
        before = settings.stat()
        assert (await declare(link, stream)).max_age_s == 60.0
        assert settings.stat().st_ino == before.st_ino
        assert (await declare(link, Stream(name="KEPT", subjects=("kept",), max_age_s=90.0))).max_age_s == 90.0
        assert settings.stat().st_ino != before.st_ino
        assert (await link.api("STREAM.INFO.KEPT"))["config"]["metadata"]["ours"] == "x"
        await link.close()
