"""The store of a running node: it comes with the node, is restarted when it dies, and leaves with the node."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.faults.crowd import Crowd
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.node import NotReadyError
from tests.harness.raw import Client
from tests.harness.wire import KEPT, Kind
from tests.node.watching import WatchedStore, lives, of_folder, until

EXIT_CONFIGURATION = 2


def exchange(subscriber: Client, publisher: Client, payload: bytes) -> None:
    """A message that needs no store goes through at each QoS."""
    for qos in (0, 1, 2):
        publisher.publish("t", payload, qos=qos)
        assert subscriber.take().payload == payload


def test_it_comes_with_the_node_and_listens_on_loopback_alone(make_node: NodeMaker) -> None:
    begin = time.monotonic()
    node = make_node()
    took = time.monotonic() - begin
    print(f"ready after {took:.2f} s")
    with WatchedStore(node) as watched:
        watched.until_ready()
        assert watched.gauge("store_up") == 1
        assert watched.counter("store_restarts") == 0
        assert watched.alarms() == {}
        store = watched.has_store()
        listening = [each for each in store.net_connections("inet") if each.status == psutil.CONN_LISTEN]
        assert {each.laddr.ip for each in listening} == {"127.0.0.1"}
        assert node.process.pid in {process.pid for process in of_folder(node.folder / "data")}
        assert node.stop() == 0
        assert not lives(store)
    assert of_folder(node.folder / "data") == []


def test_kill_9_of_the_store_is_hardly_noticed(make_node: NodeMaker, client: ClientMaker) -> None:
    node = make_node()
    subscriber, publisher = client(to=node), client(to=node)
    subscriber.subscribe("t", qos=2)
    with WatchedStore(node) as watched:
        watched.until_ready()
        for number in range(1, 4):
            store = watched.has_store()
            begin = time.monotonic()
            store.kill()
            until(lambda: watched.counter("store_restarts") == number, "a new process serves")  # noqa: B023
            watched.until_ready()
            took = time.monotonic() - begin
            print(f"kill {number}: back after {took:.3f} s")
            assert watched.has_store().pid != store.pid
            exchange(subscriber, publisher, b"%d" % number)
        until(lambda: watched.alarms() == {}, "the alarm is over")
    assert "the store cannot be used: the store's process was killed by signal 9" in node.log()
    assert "the store can be used" in node.log()


def test_kill_9_of_the_node_leaves_nothing_and_the_next_start_works_at_once(make_node: NodeMaker) -> None:
    node = make_node()
    folder = node.folder / "data"
    with WatchedStore(node) as watched:
        store = watched.has_store()
        node.kill()
        print(f"the store is gone after {until(lambda: not lives(store), 'the store dies with its node'):.3f} s")
    begin = time.monotonic()
    again = make_node(arguments=("--data-dir", str(folder)))
    print(f"started again after {time.monotonic() - begin:.2f} s")
    with WatchedStore(again) as watched:
        watched.until_ready()
        assert watched.has_store().pid != store.pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_the_store_last(make_node: NodeMaker, client: ClientMaker, number: signal.Signals) -> None:
    """While the node waits for a client that does not read, its store is there; the signal goes to the whole group."""
    node = make_node('[edge]\ndrain_time = "1s"')
    crowd = Crowd()
    with WatchedStore(node) as watched:
        crowd.gather(1, node.mqtt, "t")
        publisher = client(to=node)
        while not watched.counter("subscribers_lagging"):
            publisher.publish("t", bytes(10_000))
        store = watched.has_store()
        os.killpg(node.process.pid, number)
        publisher.expect(Kind.DISCONNECT)
        assert lives(store), "clients are told while the store still runs"
        assert node.stop() == 0
        assert not lives(store)
    crowd.close()


def start_in_vain(folder: Path, config: str = "") -> list[str]:
    """What a node says that does not start, with exit code 2 and nothing left behind."""
    file = folder / "brookmq.toml"
    file.write_text(config)
    command = [sys.executable, "-m", "brookmq", "start", "--config", str(file), "--data-dir", str(folder / "data")]
    command += ["--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (EXIT_CONFIGURATION, "")
    assert of_folder(folder) == []
    return ended.stderr.splitlines()


def test_two_nodes_on_one_folder_is_an_error(make_node: NodeMaker) -> None:
    node = make_node()
    with pytest.raises(NotReadyError, match=rf"is in use by another node \(process {node.process.pid}\)"):
        make_node(arguments=("--data-dir", str(node.folder / "data")))
    with WatchedStore(node) as watched:
        watched.until_ready()


def test_a_server_that_is_too_old_is_refused_with_one_line(tmp_path: Path) -> None:
    old = tmp_path / "old-server"
    old.write_text("#!/bin/sh\necho nats-server: v2.14.6\n")
    old.chmod(0o755)
    (line,) = start_in_vain(tmp_path, f'[store]\nbinary = "{old}"')
    assert f"{old} is version 2.14.6; the store needs nats-server 2.15.1 or newer" in line


def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    (line,) = start_in_vain(tmp_path, '[store]\nbinary = "/nowhere/nats"')
    assert "store.binary: there is no program /nowhere/nats" in line


def test_a_configured_port_in_use_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (line,) = start_in_vain(tmp_path, f"[store]\nport = {port}")
    assert f"the store cannot start: its port is in use (127.0.0.1:{port})" in line


def test_a_store_that_hangs_is_told_and_back_when_it_answers(make_node: NodeMaker, client: ClientMaker) -> None:
    node = make_node()
    subscriber, publisher = client(to=node), client(to=node)
    subscriber.subscribe("t", qos=2)
    with WatchedStore(node) as watched:
        watched.until_ready()
        store = watched.has_store()
        store.suspend()
        try:
            reason = watched.until_not_ready()
            print(reason)
            assert "store" in watched.alarms()["store_down"]
            assert watched.gauge("store_up") == 0
            assert watched.is_healthy()
            exchange(subscriber, publisher, b"without the store")
        finally:
            store.resume()
        watched.until_ready()
        until(lambda: watched.alarms() == {}, "the alarm is over")
        assert watched.has_store().pid == store.pid, "it was not started anew"


def test_a_stop_does_not_wait_for_ever_for_a_store_that_hangs(make_node: NodeMaker, client: ClientMaker) -> None:
    node = make_node()
    with WatchedStore(node) as watched:
        watched.until_ready()
        store = watched.has_store()
        client(5, "kept", to=node, **KEPT).subscribe("t", qos=1)
        store.suspend()
        begin = time.monotonic()
        assert node.stop() == 0
        print(f"stopped after {time.monotonic() - begin:.1f} s")
        assert not lives(store)
