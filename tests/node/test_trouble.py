"""A store that cannot be used: the node serves who needs none, says why, and has it back when the reason is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from brookmq.store.streams import look
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.node.small_disk import SHORT_WAIT, served_without_a_store
from tests.node.watching import WatchedStore, until
from tests.store.log_servers import Servers, linked, running

ROOM = "100GB"  # that an external store has to grant: it reserves journal.max_bytes


def test_a_disk_without_room_is_told_and_passes(tmp_path: Path) -> None:
    """On a disk of its own, in a mount namespace that ends with the process."""
    disk, logs = tmp_path / "disk", tmp_path / "logs"
    disk.mkdir()
    program = f"exec {sys.executable} -m tests.node.small_disk {disk} {logs}"
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    command = [*unshare, "sh", "-c", f"mount -t tmpfs -o size=64m tmpfs {disk} && {program}"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    print(answer.stdout, answer.stderr)
    assert answer.returncode == 0


def test_a_folder_that_cannot_be_used_at_the_start_is_told_and_passes(
    make_node: NodeMaker, client: ClientMaker, tmp_path: Path
) -> None:
    """A file in a folder's place stands for a disk that is not mounted: unlike permissions it stops root, too."""
    place = tmp_path / "disk"
    place.touch()
    node = make_node(SHORT_WAIT, arguments=("--data-dir", str(place / "data")))
    with WatchedStore(node) as watched:
        assert f"the data folder {place / 'data'} cannot be used (Not a directory)" in watched.readiness()
        assert "cannot be used" in watched.alarms()["store_down"]
        assert watched.is_healthy()
        served_without_a_store(client(to=node))
        place.unlink()
        print(f"ready {watched.until_ready():.2f} s after the folder could be made")
        until(lambda: watched.alarms() == {}, "the alarm is over")
        watched.has_store()


def test_a_folder_that_is_gone_later_is_told_and_passes(make_node: NodeMaker) -> None:
    node = make_node()
    place, away = node.folder / "data" / "store", node.folder / "data" / "away"
    with WatchedStore(node) as watched:
        watched.until_ready()
        store = watched.has_store()
        place.rename(away)
        place.touch()
        store.kill()
        until(lambda: "cannot be used" in watched.readiness(), "the reason is told")
        place.unlink()
        away.rename(place)
        print(f"ready {watched.until_ready():.2f} s after the folder was back")


def external(urls: list[str], **more: str) -> str:
    return "\n".join(["[store]", f"servers = {urls}", *(f'{key} = "{value}"' for key, value in more.items())])


def test_an_external_store_that_is_not_there_at_the_start(make_node: NodeMaker, client: ClientMaker) -> None:
    with running(room=ROOM) as servers:
        servers.kill()
        node = make_node(external(servers.urls))
        with WatchedStore(node) as watched:
            address = servers.urls[0].removeprefix("nats://")
            until(lambda: "does not answer" in watched.readiness(), "the reason is told")
            assert watched.readiness() == f"the store does not answer (connection refused) at {address}"
            assert address in watched.alarms()["store_down"]
            client(to=node).sync()
            servers.start()
            print(f"ready {watched.until_ready():.2f} s after the store was there")
            assert watched.store() is None, "the node starts none of its own"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_an_external_store_that_is_gone_later(make_node: NodeMaker, client: ClientMaker, how: signal.Signals) -> None:
    with running(room=ROOM) as servers:
        node = make_node(external(servers.urls))
        with WatchedStore(node) as watched:
            watched.until_ready()
            subscriber = client(to=node)
            if how is signal.SIGKILL:
                servers.kill()
            else:
                servers.freeze()
            print(watched.until_not_ready())
            assert "store_down" in watched.alarms()
            subscriber.sync()
            if how is signal.SIGKILL:
                servers.start()
            else:
                servers.thaw()
            print(f"ready {watched.until_ready():.2f} s after the store was back")
            until(lambda: watched.alarms() == {}, "the alarm is over")


def test_an_external_store_asks_who_we_are(make_node: NodeMaker) -> None:
    users = 'accounts {\n  BROOKMQ { jetstream: enabled, users: [{ user: "core", password: "right" }] }\n}'
    with running(extra=users, room=ROOM) as servers:
        with WatchedStore(make_node(external(servers.urls, user="core", password="right"))) as watched:
            watched.until_ready()
        wrong = make_node(external(servers.urls, user="core", password="wrong"))
        with WatchedStore(wrong) as watched:
            until(lambda: "Authorization Violation" in watched.readiness(), "the refusal is told")
        assert "wrong" not in wrong.log(), "no password in the log"


def test_three_servers_hold_three_copies_of_everything(make_node: NodeMaker) -> None:
    with running(3, room=ROOM) as servers:
        node = make_node(external(servers.urls))
        with WatchedStore(node) as watched:
            print(f"ready {watched.until_ready():.2f} s after the start: the servers had to elect")
            copies = asyncio.run(replicas(servers))
            assert {"JOURNAL_0", "JOURNAL_3", "SESSIONS", "SESSIONS_PARTS", "RETAINED"} <= copies.keys()
            assert set(copies.values()) == {3}
            servers.kill(0)
            servers.start(0)
            watched.until_ready()


async def replicas(servers: Servers) -> dict[str, int]:
    async with linked(servers) as link:
        names = (await link.api("STREAM.NAMES"))["streams"]
        return {name: (await look(link, name)).replicas for name in names}


def test_an_external_store_that_grants_too_little_is_told(make_node: NodeMaker) -> None:
    with running(room="100MB") as servers, WatchedStore(make_node(external(servers.urls))) as watched:
        until(lambda: "journal.max_bytes" in watched.readiness(), "the reason is told")
        print(watched.readiness())
