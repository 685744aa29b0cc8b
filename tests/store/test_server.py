"""The supervised store, as a real process: started, killed in every way, stopped last."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from brookmq.base.errors import OperationError
from brookmq.store import probe
from brookmq.store.diagnosis import Diagnosis, Trouble
from brookmq.store.external import ExternalStore
from brookmq.store.folder import DataFolder
from brookmq.store.process import LINE_BYTES_MAX, TETHER, ServerProcess
from brookmq.store.server import StoreOptions, StoreServer
from brookmq.store.settings_file import Credentials
from tests.store.supervising import PATIENCE_SECONDS, Told, connected, lives, running, until


def own(path: Path) -> tuple[subprocess.Popen[str], int]:
    """An owner in a process and session of its own, and its store's pid."""
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.store.owner", str(path)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert owner.stdout is not None
    return owner, int(owner.stdout.readline())


async def test_it_is_ready_within_a_second_and_ends_in_order(tmp_path: Path) -> None:
    begin = time.monotonic()
    async with running(tmp_path) as (store, told):
        took = time.monotonic() - begin
        print(f"ready after {took:.3f} s")
        assert store.ready
        assert told.story == ["ready"]
        assert (store.reason, store.diagnosis) == ("", None)
        assert store.addresses[0].startswith("nats://127.0.0.1:")
        async with connected(store) as client:
            assert client.max_payload == 8 * 1024 * 1024
        begin = time.monotonic()
    print(f"stopped after {time.monotonic() - begin:.3f} s")
    assert told.story == ["ready"], "an orderly end is no trouble"


async def test_nobody_without_the_password_gets_in(tmp_path: Path) -> None:
    async with running(tmp_path) as (store, _):
        for credentials in (None, Credentials("core", "guess"), Credentials("sys", "")):
            stranger = probe.Probe(store.addresses, credentials)
            outcome, reason, _ = await stranger.ask()
            await stranger.close()
            assert outcome is probe.Outcome.SILENT
            assert "Authorization Violation" in reason


async def test_a_killed_store_is_back_with_its_data_on_the_same_port(tmp_path: Path) -> None:
    async with running(tmp_path) as (store, told), connected(store) as client:
        jetstream = client.jetstream()
        await jetstream.add_stream(name="NUMBERS", subjects=["numbers"])
        addresses = store.addresses
        for number in range(4):
            await jetstream.publish("numbers", str(number).encode(), timeout=PATIENCE_SECONDS)
            pid = store.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await until(lambda: not store.ready, "the death is noticed")
            assert "signal 9" in store.reason
            took = await until(lambda: store.ready, "ready again")
            print(f"kill {number}: back after {took:.3f} s")
            assert store.pid != pid
            assert store.addresses == addresses
            await until(lambda: client.is_connected, "the client is back")
        for number in range(4):
            message = await jetstream.get_msg("NUMBERS", number + 1)
            assert message.data == str(number).encode()
    assert [each for each in told.story if each == "ready"] == ["ready"] * 5


async def test_it_dies_with_its_owner_and_the_folder_is_free_at_once(tmp_path: Path) -> None:
    owner, pid = await asyncio.to_thread(own, tmp_path)
    assert lives(pid)
    owner.kill()
    owner.communicate()
    took = await until(lambda: not lives(pid), "the store dies")
    begin = time.monotonic()
    async with running(tmp_path) as (store, _):
        print(f"store gone after {took:.3f} s, started again in {time.monotonic() - begin:.3f} s")
        assert store.ready


def test_killed_at_any_moment_an_owner_leaves_nothing_behind(tmp_path: Path) -> None:
    """While it starts, too: between fork and exec, before and after the kernel was asked to end the child with it."""
    seed = random.SystemRandom().randrange(10**9)
    print(f"seed {seed}")
    chance, reached = random.Random(seed), 0
    begin = time.monotonic()
    owner, _ = own(tmp_path)
    start_seconds = time.monotonic() - begin
    owner.kill()
    owner.communicate()
    for _ in range(12):
        owner = subprocess.Popen([sys.executable, "-m", "tests.store.owner", str(tmp_path)], stdout=subprocess.DEVNULL)
        time.sleep(
            start_seconds * chance.uniform(0.6, 1.1)
        )  # not waited for anything: the moment of the kill is random
        reached += bool(of_folder(tmp_path) - {owner.pid})
        owner.kill()
        owner.wait()
        asyncio.run(until(lambda: not of_folder(tmp_path), "no process is left"))
        # A process that is ending has lost its name before its files: the lock may be a moment later.
        DataFolder.open(tmp_path, wait_seconds=1).close()
    print(f"{reached} of 12 kills met a child")


def of_folder(path: Path) -> set[int]:
    """The processes that have this folder in their command line."""
    found = psutil.process_iter(["cmdline", "status"])
    return {
        process.pid
        for process in found
        if any(str(path) in word for word in process.info["cmdline"] or ())
        and process.info["status"] != psutil.STATUS_ZOMBIE
    }


def test_the_tether_notices_a_parent_that_died_first_and_a_program_that_is_not_there() -> None:
    for parent, program, words in (
        (1, "/bin/true", "the node has ended meanwhile"),
        (os.getpid(), "/bin/absent", "/bin/absent cannot be run: No such file"),
    ):
        answer = subprocess.run(
            [sys.executable, TETHER, str(parent), program], capture_output=True, text=True, check=False
        )
        assert answer.returncode == 1
        assert words in answer.stderr


async def test_a_second_node_on_the_folder_is_told_who_has_it(tmp_path: Path) -> None:
    owner, _ = await asyncio.to_thread(own, tmp_path)
    try:
        with pytest.raises(OperationError, match=rf"in use by another node \(process {owner.pid}\)"):
            DataFolder.open(tmp_path, wait_seconds=0.1)
    finally:
        owner.terminate()
        await asyncio.to_thread(owner.communicate)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_to_the_whole_group_leaves_the_store_to_its_owner(tmp_path: Path, number: int) -> None:
    owner, pid = await asyncio.to_thread(own, tmp_path)
    os.killpg(owner.pid, number)
    output, _ = await asyncio.to_thread(owner.communicate)
    assert output.splitlines() == ["the store lives", "the store is gone"]
    assert owner.returncode == 0
    assert not lives(pid)


async def test_a_store_that_does_not_answer_is_not_ready_and_back_when_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "ANSWER_SECONDS_MAX", 0.2)
    monkeypatch.setattr(probe, "CONNECT_SECONDS_MAX", 0.2)
    async with running(tmp_path) as (store, _):
        process = psutil.Process(store.pid)
        process.suspend()
        await until(lambda: not store.ready, "the silence is noticed")
        assert "does not answer (no answer in time)" in store.reason
        process.resume()
        await until(lambda: store.ready, "ready again")
        assert store.pid == process.pid, "it was not started anew"


@pytest.mark.parametrize(("script", "busy"), [("while :; do :; done", True), ("exec sleep 60", False)])
async def test_a_process_that_works_is_told_from_one_that_hangs(script: str, busy: bool) -> None:
    ends: list[tuple[int, str]] = []
    process = ServerProcess(["/bin/sh", "-c", script], [], lambda line: None, lambda *end: ends.append(end))
    await process.listen()
    await until(lambda: process.has_worked() is busy and process.looks >= 2, "two looks")
    process.kill()
    process.kill()
    await until(lambda: ends, "its end is told")
    assert ends == [(-signal.SIGKILL, "")]


async def test_an_end_is_told_although_somebody_else_keeps_stderr_open() -> None:
    ends: list[tuple[int, str]] = []
    process = ServerProcess(["/bin/sh", "-c", "sleep 2 & exit 3"], [], lambda line: None, lambda *end: ends.append(end))
    await process.listen()
    assert await until(lambda: ends, "its end is told") < 2
    assert ends == [(3, "")]


async def test_a_panic_is_told_by_its_first_line_and_long_lines_are_cut() -> None:
    ends: list[tuple[int, str]] = []
    lines: list[str] = []
    script = (
        "printf 'panic: no more\\n\\ngoroutine 1 [running]:\\n' >&2; head -c 100000 /dev/zero | tr '\\0' x >&2; exit 2"
    )
    process = ServerProcess(["/bin/sh", "-c", script], [], lines.append, lambda *end: ends.append(end))
    await process.listen()
    await until(lambda: ends, "its end is told")
    assert ends == [(2, "panic: no more")]
    assert [len(line) for line in lines[3:]] == [LINE_BYTES_MAX]


async def test_it_can_be_stopped_while_it_starts_and_started_again(tmp_path: Path) -> None:
    folder, told = DataFolder.open(tmp_path), Told()
    store = StoreServer(folder, StoreOptions("test"), told.ready, told.down)
    await store.stop()
    starting = asyncio.create_task(store.start())
    await until(lambda: store.reason == "the store is starting", "it starts")
    await store.stop()
    assert await starting is False
    assert store.pid is None
    assert await store.start()
    await store.stop()
    folder.close()


async def test_a_configured_port_that_is_in_use_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OperationError, match=rf"its port is in use \(127\.0\.0\.1:{port}\)"):
            async with running(tmp_path, StoreOptions("test", port=port)):
                pass
    async with running(tmp_path, StoreOptions("test", port=port)) as (store, _):
        assert store.addresses == [f"nats://127.0.0.1:{port}"]


async def test_a_program_that_is_too_old_is_an_error(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho nats-server: v2.14.0\n")
    old.chmod(0o755)
    with pytest.raises(OperationError, match=r"is version 2\.14\.0"):
        async with running(tmp_path / "data", StoreOptions("test", binary=str(old))):
            pass


async def test_settings_that_are_refused_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match="refuses its settings"):
        async with running(tmp_path, StoreOptions("a name with spaces")):
            pass


async def test_settings_that_became_garbage_are_written_anew(tmp_path: Path) -> None:
    async with running(tmp_path):
        pass
    (tmp_path / "store" / "nats.conf").write_bytes(b"\xff\x00{{{")
    async with running(tmp_path) as (store, _):
        assert store.ready


async def test_a_program_that_dies_at_once_is_no_busy_loop(tmp_path: Path) -> None:
    """And its last words are the reason."""
    bad, count = tmp_path / "bad", tmp_path / "count"
    bad.write_text(
        f"""#!/bin/sh
case "$1" in --version) echo nats-server: v2.15.1; exit;; -t) exit;; esac
echo x >> {count}
echo "[1] 2026/01/01 00:00:00.0 [FTL] the moon is in the way" >&2
exit 1
"""
    )
    bad.chmod(0o755)
    async with running(tmp_path / "data", StoreOptions("test", binary=str(bad))) as (store, told):
        assert not store.ready
        assert store.reason == "the moon is in the way"
        assert len(told.story) == 1, "told once"
        assert 2 <= len(count.read_text().split()) <= 8


def test_a_full_disk_is_told_loses_nothing_and_passes(tmp_path: Path) -> None:
    """On a disk of its own, in a mount namespace that ends with the process."""
    mount = f"mount -t tmpfs -o size=48m tmpfs {tmp_path} && exec {sys.executable} -m tests.store.full_disk {tmp_path}"
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    answer = subprocess.run([*unshare, "sh", "-c", mount], capture_output=True, text=True, timeout=60, check=False)
    print(answer.stdout, answer.stderr)
    assert answer.returncode == 0
    assert f"the disk of the data folder {tmp_path}/data is full" in answer.stdout


async def test_a_folder_that_cannot_be_used_is_told_and_passes(tmp_path: Path) -> None:
    """A file in the folder's place stands for a disk that is gone: unlike permissions it stops root, too."""
    async with running(tmp_path) as (store, _):
        place, away = tmp_path / "store", tmp_path / "away"
        place.rename(away)
        place.touch()
        assert store.pid is not None
        os.kill(store.pid, signal.SIGKILL)
        await until(lambda: store.diagnosis and store.diagnosis.trouble is Trouble.UNWRITABLE, "it is told")
        assert str(tmp_path) in store.reason
        place.unlink()
        away.rename(place)
        print(f"ready {await until(lambda: store.ready, 'ready again', 5.0):.2f} s after it was back")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (b'{"memory": 0}', "ANSWERED"),
        (b'{"error": {"code": 503, "err_code": 10039, "description": "not enabled for account"}}', "DISABLED"),
        (b'{"error": {"code": 503, "err_code": 10076, "description": "not enabled"}}', "DISABLED"),
        (b'{"error": {"code": 503, "err_code": 10008, "description": "no leader"}}', "SILENT"),
        (b'{"error": {}}', "SILENT"),
        (b'{"error": 1}', "SILENT"),
        (b"[]", "SILENT"),
        (b"\xff", "SILENT"),
    ],
)
def test_only_a_store_without_jetstream_needs_a_new_start(answer: bytes, outcome: str) -> None:
    assert probe._judge(answer).outcome is probe.Outcome[outcome]


async def test_an_external_store_has_the_same_face(tmp_path: Path) -> None:
    told = Told()
    async with running(tmp_path) as (store, _):
        addresses, credentials = store.addresses, store.credentials
        external = ExternalStore(addresses, credentials, told.ready, told.down)
        assert await external.start()
        assert (external.addresses, external.credentials) == (addresses, credentials)
        assert external.reason == ""
    await until(lambda: not external.ready, "its end is noticed")
    assert external.reason.startswith("the store does not answer (connection refused) at 127.0.0.1:")
    port = int(addresses[0].rpartition(":")[2])
    async with running(tmp_path, StoreOptions("test", port=port)):
        await until(lambda: external.ready, "it is back")
        wrong = ExternalStore([f"nats://core:guess@127.0.0.1:{port}"], None, told.ready, told.down)
        assert not await wrong.start(wait_seconds=0.3)
        assert "Authorization Violation" in wrong.reason
        assert "guess" not in wrong.reason
        await wrong.stop()
        await external.stop()
    assert told.story[0] == "ready"
    assert isinstance(told.story[1], Diagnosis)


async def test_an_external_store_that_is_not_there_is_waited_for() -> None:
    told = Told()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    external = ExternalStore([f"nats://127.0.0.1:{port}"], Credentials("a", "b"), told.ready, told.down)
    assert not await external.start(wait_seconds=0.2)
    assert external.reason.endswith(f"at 127.0.0.1:{port}")
    await external.stop()
    await external.stop()
