"""The listeners of a real node: all kinds in the ready line, a port in use, new certificates, proxies, slow readers."""

from __future__ import annotations

import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.edge.certificates import Authority, CertificateFiles
from tests.edge.test_proxy_protocol import INET, INET_PORTS, v2
from tests.harness.node import Node
from tests.harness.raw import Address, Client, Stream
from tests.harness.websocket import WebSocketStream

MakeNode = Callable[..., Node]
DEADLINE_SECONDS = 60.0
LINE = b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 1883\r\n"


class TlsStream(Stream):
    """TLS on a plain connection that may have sent something before."""

    def __init__(self, address: Address, ca: Path, before: bytes = b"") -> None:
        super().__init__(address)
        self.socket.sendall(before)
        self.socket = ssl.create_default_context(cafile=str(ca)).wrap_socket(self.socket, server_hostname="localhost")

    def shown(self) -> str:
        """The common name of the node's certificate."""
        assert isinstance(self.socket, ssl.SSLSocket)
        certificate = self.socket.getpeercert()
        assert certificate is not None
        parts: list[tuple[tuple[str, str], ...]] = list(certificate["subject"])  # type: ignore[arg-type]
        return next(value for part in parts for key, value in part if key == "commonName")


@pytest.fixture
def live(tmp_path: Path) -> tuple[Authority, CertificateFiles]:
    """An authority, and the files that the node reads."""
    authority = Authority(tmp_path / "certificates")
    first = authority.issue("first", "first", ("localhost",))
    files = CertificateFiles(tmp_path / "live.crt", tmp_path / "live.key")
    shutil.copy(first.cert, files.cert)
    shutil.copy(first.key, files.key)
    return authority, files


def listener(name: str, type_: str, bind: str = "127.0.0.1:0", extra: str = "") -> str:
    return f'[listeners.{name}]\ntype = "{type_}"\nbind = "{bind}"\n{extra}\n'


def tls(files: CertificateFiles) -> str:
    return f'tls = {{ cert = "{files.cert}", key = "{files.key}" }}'


def round_trip(client: Client) -> None:
    """CONNECT, and a message to oneself."""
    client.connect()
    client.subscribe("listeners/own")
    client.publish("listeners/own", b"hello")
    assert client.take().payload == b"hello"
    client.close()


def test_every_kind_at_once(make_node: MakeNode, tmp_path: Path, live: tuple[Authority, CertificateFiles]) -> None:
    authority, files = live
    path = tmp_path / "mqtt.sock"
    node = make_node(
        listener("a", "tcp")
        + listener("b", "tcp", "[::1]:0")
        + listener("c", "ws")
        + listener("d", "tls", extra=tls(files))
        + listener("e", "wss", extra=tls(files))
        + listener("f", "unix", str(path))
    )
    for which in (0, 1):
        round_trip(Client(node.address("mqtt", which) or ("", 0)))
    round_trip(Client(node.mqtt, stream=WebSocketStream(node.address("ws") or ("", 0))))
    round_trip(Client(node.mqtt, stream=TlsStream(node.address("tls") or ("", 0), authority.ca)))
    assert node.address("wss")
    assert node.listeners["unix"] == str(path)
    subprocess.run(
        ["mosquitto_pub", "--unix", str(path), "-t", "x", "-m", "y", "-q", "1"], check=True, timeout=DEADLINE_SECONDS
    )
    assert node.stop() == 0
    assert not path.exists()


@pytest.mark.parametrize("kind", ["tcp", "tls", "ws", "wss"])
def test_a_port_in_use_is_one_line_and_exit_code_2(
    tmp_path: Path, live: tuple[Authority, CertificateFiles], kind: str
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        config = tmp_path / "brookmq.toml"
        config.write_text(listener("mine", kind, f"127.0.0.1:{port}", tls(live[1]) if kind in {"tls", "wss"} else ""))
        done = subprocess.run(
            [sys.executable, "-m", "brookmq", "start", "--config", str(config), "--http", "127.0.0.1:0",
             "--data-dir", str(tmp_path / "data")],
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "ready" not in done.stdout
    last = done.stderr.strip().splitlines()[-1]
    assert f"listeners.mine.bind: 127.0.0.1:{port} is in use by another program" in last
    assert "Traceback" not in done.stderr


def test_new_certificates_with_sighup(make_node: MakeNode, live: tuple[Authority, CertificateFiles]) -> None:
    authority, files = live
    node = make_node(listener("secure", "tls", extra=tls(files)))
    address = node.address("tls") or ("", 0)
    old = TlsStream(address, authority.ca)
    assert old.shown() == "first"
    second = authority.issue("second", "second", ("localhost",))
    shutil.copy(second.cert, files.cert)
    shutil.copy(second.key, files.key)
    node.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "certificates reloaded" in node.log())
    new = TlsStream(address, authority.ca)
    assert new.shown() == "second"
    files.key.write_text("broken")
    node.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "certificates not reloaded: listeners.secure.tls.cert" in node.log())
    still = TlsStream(address, authority.ca)
    assert still.shown() == "second"
    for stream in (old, new, still):
        round_trip(Client(address, stream=stream))


@pytest.mark.parametrize("header", [LINE, v2(INET + INET_PORTS)], ids=["version 1", "version 2"])
def test_behind_a_proxy(make_node: MakeNode, live: tuple[Authority, CertificateFiles], header: bytes) -> None:
    authority, files = live
    node = make_node(
        listener("plain", "tcp", extra="proxy_protocol = true")
        + listener("secure", "tls", extra="proxy_protocol = true\n" + tls(files))
    )
    stream = Stream(node.mqtt)
    stream.send(header)
    round_trip(Client(node.mqtt, stream=stream))
    address = node.address("tls") or ("", 0)
    round_trip(Client(address, stream=TlsStream(address, authority.ca, header)))
    bare = Stream(node.mqtt)
    bare.send(b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00")
    assert ended(bare)


@pytest.mark.parametrize("kind", ["tcp", "tls", "ws"])
def test_nothing_within_the_connect_timeout(
    make_node: MakeNode, live: tuple[Authority, CertificateFiles], kind: str
) -> None:
    """Whichever handshake it hangs in: the connection ends."""
    authority, files = live
    config = '[mqtt]\nconnect_timeout = "1s"\n' + listener("one", kind, extra=tls(files) if kind == "tls" else "")
    node = make_node(config)
    address = node.address("mqtt" if kind == "tcp" else kind) or ("", 0)
    silent, slow = Stream(address), Stream(address)
    slow.send({"tcp": b"\x10\x0c\x00\x04MQ", "tls": b"\x16\x03\x01\x02", "ws": b"GET /mqtt HT"}[kind])
    if kind == "tls":
        later: Stream = TlsStream(address, authority.ca)
    else:
        later = Stream(address) if kind == "tcp" else WebSocketStream(address)
    for stream in (silent, slow, later):
        assert ended(stream)


@pytest.mark.parametrize("kind", ["tcp", "tls", "ws"])
def test_a_subscriber_that_does_not_read_costs_a_bounded_number_of_bytes(
    make_node: MakeNode, live: tuple[Authority, CertificateFiles], kind: str
) -> None:
    authority, files = live
    node = make_node(listener("plain", "tcp") + (listener("other", kind, extra=tls(files) if kind == "tls" else "")))
    if kind == "tcp":
        sleeper = Client(node.address("mqtt", 1) or ("", 0))
    elif kind == "tls":
        address = node.address("tls") or ("", 0)
        sleeper = Client(address, stream=TlsStream(address, authority.ca))
    else:
        sleeper = Client(node.mqtt, stream=WebSocketStream(node.address("ws") or ("", 0)))
    sleeper.connect()
    sleeper.subscribe("flood")
    publisher = Client(node.mqtt)
    publisher.connect()
    process = psutil.Process(node.process.pid)
    before = process.memory_info().rss
    for _ in range(400):
        publisher.publish("flood", bytes(100_000))
    publisher.publish("flood/end", b"", qos=1)  # acknowledged when all of it is through
    grown = process.memory_info().rss - before
    assert grown < 16 << 20, f"{grown:,} bytes more after 40 MB"
    publisher.close()
    sleeper.close()


def ended(stream: Stream) -> bool:
    """The node ends the connection; what it sends before that does not matter."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    try:
        while stream.receive(max(0.001, deadline - time.monotonic())):
            pass
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        stream.close()
    return True


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
