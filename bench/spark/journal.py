"""A node with a journal, and messages in it."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from brookmq.mqtt.publish import encode_publish

ROW_BYTES: Final = 200  # of topic, client id and payload
DEVICES: Final = 1000
BURST: Final = 10  # messages of a device in a row
CHUNKS: Final = 200  # of different bytes; they are sent again and again
CHUNK: Final = 1000  # messages that are sent at once, and acknowledged before the next but one
CLIENT_ID: Final = "bench"
CONNECT: Final = b"\x10\x11\x00\x04MQTT\x04\x02\x00\x00\x00\x05" + CLIENT_ID.encode()
STOP_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Node:
    process: subprocess.Popen[str]
    mqtt_port: int
    url: str

    @property
    def own(self) -> psutil.Process:
        return psutil.Process(self.process.pid)

    @property
    def store(self) -> psutil.Process:
        return next(child for child in self.own.children(recursive=True) if "nats" in child.name())


@contextmanager
def node(folder: Path, shards: int, capture: str = "#") -> Iterator[Node]:
    """A node with a journal of its own that captures a filter, or nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "brookmq.toml"
    filters = json.dumps([capture] if capture else [])
    config.write_text(f"[journal]\ncapture = {filters}\nshards = {shards}\n")
    command = [sys.executable, "-m", "brookmq", "start", "--config", str(config), "--data-dir", str(folder / "data")]
    command += ["--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("brookmq ready "))
            listeners = dict(pair.split("=", 1) for pair in line.split()[2:])
            yield Node(process, int(listeners["mqtt"].rpartition(":")[2]), f"http://{listeners['http']}")
        finally:
            process.terminate()
            process.wait(STOP_S)


def chunks() -> list[bytes]:
    """Messages of devices that send some at a time: JSON with numbers that nobody can guess, as sensors have them."""
    dice = random.Random(1)
    made = []
    for _ in range(CHUNKS):
        packets = []
        for number in range(CHUNK):
            if number % BURST == 0:
                topic = f"sensors/{dice.randrange(DEVICES):04}/data".encode()
            payload = f'{{"temperature": {dice.gauss(20, 5)}, "humidity": {dice.random()}, "state": "running", '
            payload += f'"id": "{dice.getrandbits(128):032x}", "sequence": {number}'
            size = ROW_BYTES - len(topic) - len(CLIENT_ID) - 1
            packets.append(encode_publish(0x32, topic, number + 1, False, b"", f"{payload:{size}}}}".encode()))
        made.append(b"".join(packets))
    return made


class Publisher:
    """A connection that publishes at QoS 1, and knows when a message is stored."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb", 1 << 16)
        self._socket.sendall(CONNECT)
        self._answers.read(4)

    def one(self, topic: str, payload: bytes) -> None:
        self._socket.sendall(encode_publish(0x32, topic.encode(), 1, False, b"", payload))
        self._answers.read(4)

    def many(self, rows: int) -> None:
        """Chunks of messages; all of them are in the journal when it returns."""
        made, count = chunks(), rows // CHUNK
        for number in range(count + 1):
            if number < count:
                self._socket.sendall(made[number % CHUNKS])
            if number > 0:
                self._answers.read(4 * CHUNK)

    def close(self) -> None:
        self._answers.close()
        self._socket.close()
