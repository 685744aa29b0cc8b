"""The example plugin: installed as a user installs it, and run in a real node."""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

PACKAGE = Path(__file__).parents[1]
SECONDS = 20.0  # for each thing that is waited for; it takes a fraction of it

CONFIG = """
[plugins]
enabled = ["stamp"]

[plugins.settings.stamp]
prefix = "sensors/"
announce = "announcements"
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the package is installed in."""
    folder = tmp_path_factory.mktemp("installed")
    source = shutil.copytree(PACKAGE, tmp_path_factory.mktemp("source") / "plugin")  # a build leaves files there
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    command += ["--disable-pip-version-check", "--target", str(folder), str(source)]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="module")
def port(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The MQTT port of a node with the plugin."""
    folder = tmp_path_factory.mktemp("node")
    (folder / "stamp.toml").write_text(CONFIG)
    command = [sys.executable, "-m", "brookmq", "start", "--config", str(folder / "stamp.toml")]
    command += ["--data-dir", str(folder / "data"), "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    path = os.pathsep.join(filter(None, (str(installed), os.environ.get("PYTHONPATH"))))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}) as node:
        try:
            assert node.stdout is not None
            ready = re.search(r" mqtt=127\.0\.0\.1:(\d+)", node.stdout.readline())
            assert ready is not None
            yield int(ready[1])
        finally:
            node.terminate()


class Client:
    """A client that is connected and subscribed, with what it received."""

    def __init__(self, port: int, client_id: str, topic_filter: str) -> None:
        self.received: queue.Queue[mqtt.MQTTMessage] = queue.Queue()
        ready: queue.Queue[None] = queue.Queue()
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id, protocol=mqtt.MQTTv5)
        self.client.on_message = lambda _client, _data, message: self.received.put(message)
        self.client.on_connect = lambda client, *_: client.subscribe(topic_filter)
        self.client.on_subscribe = lambda *_: ready.put(None)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        ready.get(timeout=SECONDS)

    def next(self) -> mqtt.MQTTMessage:
        return self.received.get(timeout=SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def user_properties(message: mqtt.MQTTMessage) -> list[tuple[str, str]]:
    assert isinstance(message.properties, Properties)
    pairs: list[tuple[str, str]] = getattr(message.properties, "UserProperty", [])
    return pairs


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_under_the_prefix_are_stamped(port: int, qos: int) -> None:
    with Client(port, "reader", "sensors/#") as reader:
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.UserProperty = ("mine", "stays")
        reader.client.publish("sensors/1", b"21.5", qos, properties=properties)
        message = reader.next()
        assert (message.topic, message.payload) == ("sensors/1", b"21.5")
        first, stamp = user_properties(message)
        assert first == ("mine", "stays")
        assert stamp[0] == "received-at"
        assert re.fullmatch(r"\d{10}\.\d{3}", stamp[1])


def test_other_messages_stay_as_they_are(port: int) -> None:
    with Client(port, "reader", "other/#") as reader:
        reader.client.publish("other/1", b"x")
        assert user_properties(reader.next()) == []


def test_clients_are_announced(port: int) -> None:
    with Client(port, "watcher", "announcements") as watcher, Client(port, "newcomer", "nothing"):
        while b'"newcomer"' not in watcher.next().payload:
            pass  # the watcher may be told of itself first
