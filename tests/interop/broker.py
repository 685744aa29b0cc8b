"""Where the clients of these tests connect to: a node with every kind of listener, or a broker that runs already.

To try the tests themselves on another broker: BROOKMQ_TEST_BROKER, _TLS, _WS and _WSS as host:port, and
BROOKMQ_TEST_BROKER_CERTIFICATES for a folder with ca.crt, client.crt and client.key.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.edge.certificates import Authority, CertificateFiles
from tests.harness.node import Node, parse_address

TRANSPORTS = ("tcp", "tls", "ws", "wss")
WEBSOCKET_PATH = "/mqtt"
CLIENT_NAME = "interop-device"


class Endpoint:
    """One way into the broker."""

    def __init__(self, transport: str, host: str, port: int, ca: Path) -> None:
        self.transport = transport
        # The certificate is for the name, and clients check it.
        self.host = "localhost" if transport in {"tls", "wss"} else host
        self.port = port
        self.ca = ca

    @property
    def is_secure(self) -> bool:
        return self.transport in {"tls", "wss"}

    @property
    def is_websocket(self) -> bool:
        return self.transport in {"ws", "wss"}

    def tls_context(self) -> ssl.SSLContext | None:
        return ssl.create_default_context(cafile=str(self.ca)) if self.is_secure else None


class InteropBroker:
    """All ways into one broker. ``client`` is a certificate for clients that show one."""

    def __init__(self, addresses: dict[str, tuple[str, int]], ca: Path, client: CertificateFiles) -> None:
        self.endpoints = {name: Endpoint(name, *address, ca) for name, address in addresses.items()}
        self.ca = ca
        self.client = client


@contextmanager
def running_broker(folder: Path) -> Iterator[InteropBroker]:
    if "BROOKMQ_TEST_BROKER" in os.environ:
        yield _other_broker()
        return
    authority = Authority(folder / "certificates")
    server = authority.issue("server", "localhost", ("localhost", "127.0.0.1"))
    client = authority.issue("client", CLIENT_NAME)
    node = Node(folder / "node", _config(server, authority))
    try:
        addresses = {}
        for name in TRANSPORTS:
            address = node.address("mqtt" if name == "tcp" else name)
            assert address is not None, f"no {name} in the ready line: {node.ready}"
            addresses[name] = address
        yield InteropBroker(addresses, authority.ca, client)
    finally:
        node.stop()


def _config(server: CertificateFiles, authority: Authority) -> str:
    tls = (
        f'tls = {{ cert = "{server.cert}", key = "{server.key}", ca = "{authority.ca}", '
        'client_certificates = "optional" }\n'
    )
    return "".join(
        f'[listeners.{name}]\ntype = "{name}"\nbind = "127.0.0.1:0"\n' + (tls if name in {"tls", "wss"} else "")
        for name in TRANSPORTS
    )


def _other_broker() -> InteropBroker:
    suffixes = {"tcp": "", "tls": "_TLS", "ws": "_WS", "wss": "_WSS"}
    folder = Path(os.environ["BROOKMQ_TEST_BROKER_CERTIFICATES"])
    return InteropBroker(
        {name: parse_address(os.environ[f"BROOKMQ_TEST_BROKER{suffix}"]) for name, suffix in suffixes.items()},
        folder / "ca.crt",
        CertificateFiles(folder / "client.crt", folder / "client.key"),
    )
