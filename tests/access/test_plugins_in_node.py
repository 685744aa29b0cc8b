"""Plugins in a real node: one that sleeps, one that is missing, one that guards."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import wire
from tests.harness.fixtures import client, make_node, raw
from tests.harness.node import Node
from tests.harness.raw import Client

__all__ = ["client", "make_node", "raw"]

SOURCE = """
    import asyncio
    import time
    from brookmq.access.plugins import Plugin
    from brookmq.access.points import ALLOW, Deny, IGNORE
    from brookmq.base.message import Message

    class Sleepy(Plugin):
        async def start(self, context):
            context.hooks.register("publish", self.publish)

        async def publish(self, client, message):
            await asyncio.sleep(0)
            if message.topic == b"sleep":
                time.sleep(0.5)

    class SleepyGuard(Plugin):
        async def start(self, context):
            context.hooks.register("authenticate", self.authenticate)

        async def authenticate(self, credentials):
            if credentials.client.client_id == "tired":
                time.sleep(0.5)
            return ALLOW

    class Echo(Plugin):
        async def start(self, context):
            self.context = context
            context.hooks.register("client_online", self.online)
            context.hooks.register("client_off", self.off)
            context.hooks.register("authorize", lambda client, access: self.authorize(access), sync=True)

        async def online(self, event):
            await self.tell(b"online " + event.client.client_id.encode())

        def off(self, event):  # in a thread
            self.left = event.client.client_id
            time.sleep(0.01)

        def authorize(self, access):
            return Deny(0x87) if access.topic.startswith("forbidden") else IGNORE

        async def tell(self, payload):
            await self.context.publish(Message(b"presence", payload, 0))
"""
NAMES = {"sleepy": "Sleepy", "sleepy_guard": "SleepyGuard", "echo": "Echo"}

StartNode = Callable[..., Node]


@pytest.fixture
def start(make_node: StartNode, tmp_path: Path) -> StartNode:
    """Starts a node with these plugins installed: `start(enabled=["sleepy"])`."""
    folder = tmp_path / "installed"
    information = folder / "made_up-1.0.dist-info"
    information.mkdir(parents=True)
    (folder / "made_up.py").write_text(textwrap.dedent(SOURCE))
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n")
    entries = [f"{name} = made_up:{kind}" for name, kind in NAMES.items()]
    (information / "entry_points.txt").write_text("\n".join(["[brookmq.plugins]", *entries]))
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))

    def begin(**plugins: list[str]) -> Node:
        config = "\n".join(["[plugins]", *(f"{key} = {names!r}" for key, names in plugins.items())])
        return make_node(config, environment={"PYTHONPATH": path})

    return begin


def wait_for_log(node: Node, text: str) -> None:
    deadline = time.monotonic() + 10
    while text not in node.log():
        assert time.monotonic() < deadline, node.log()
        time.sleep(0.01)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_hook_that_sleeps_is_switched_off_and_messages_go_on(
    start: StartNode, client: Callable[..., Client], qos: int
) -> None:
    node = start(enabled=["sleepy"])
    reader, publisher = client(to=node), client(to=node)
    reader.subscribe("#", qos=2)
    publisher.publish("before", b"1", qos=qos)
    publisher.publish("sleep", b"2", qos=qos)  # passes unchanged
    wait_for_log(node, "hook publish of sleepy is switched off: it held the loop for 5")
    for number in range(20):
        publisher.publish("sleep", b"%d" % number, qos=qos)
    assert reader.take_payloads(22)[2:] == [b"%d" % number for number in range(20)]


def test_a_guard_that_sleeps_goes_on_refusing(start: StartNode, raw: Callable[..., Client]) -> None:
    node = start(required=["sleepy_guard"])
    raw(to=node).connect("awake")
    tired = raw(to=node)
    tired.send(wire.connect("tired", version=5))
    tired.receive()
    wait_for_log(node, "hook authenticate of sleepy_guard is switched off")
    late = raw(to=node)
    late.send(wire.connect("late", version=5))
    late.expect_refused(0x88)


def test_a_missing_plugin_is_a_line_in_the_log(start: StartNode, client: Callable[..., Client]) -> None:
    node = start(enabled=["nowhere", "echo"])
    assert "plugin nowhere does not run: not installed" in node.log()
    one = client(to=node)
    one.subscribe("presence")
    client(to=node, client_id="two")
    while one.take().payload != b"online two":
        pass  # nobody waits for events: the first client may be told of itself
    assert one.subscribe("forbidden/x", "$share/g/forbidden/#").reasons == [0x87, 0x87]


def test_a_missing_plugin_that_is_required_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "brookmq.toml").write_text('[plugins]\nrequired = ["nowhere"]')
    command = [sys.executable, "-m", "brookmq", "start", "--config", str(tmp_path / "brookmq.toml")]
    command += ["--data-dir", str(tmp_path / "data"), "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode != 0
    assert ended.stdout == ""
    assert "plugin nowhere does not run: not installed" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_events_and_threads_end_with_the_node(start: StartNode, client: Callable[..., Client]) -> None:
    node = start(enabled=["echo"])
    for _ in range(50):
        client(to=node)
    assert node.stop() == 0
