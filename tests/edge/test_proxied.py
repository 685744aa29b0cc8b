"""Listeners behind a proxy: the header first, then whatever the listener speaks."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from typing import Any

import pytest
from websockets.frames import Opcode

from tests.edge.certificates import Authority
from tests.edge.echo import EchoServer, serving, until, within
from tests.edge.test_proxy_protocol import INET, INET_PORTS, tlv, v2
from tests.edge.test_websocket import REQUEST, masked

LINE = b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 1883\r\n"
READY_NAMES = {"tcp": "mqtt", "tls": "tls", "ws": "ws", "wss": "wss"}


@pytest.fixture(scope="session")
def tls(authority: Authority) -> dict[str, Any]:
    files = authority.issue("proxied", "proxied", ("localhost",))
    return {"cert": str(files.cert), "key": str(files.key)}


@pytest.mark.parametrize("header", [LINE, v2(INET + INET_PORTS)], ids=["version 1", "version 2"])
@pytest.mark.parametrize("kind", ["tcp", "ws"])
async def test_the_client_is_the_one_behind_the_proxy(kind: str, header: bytes) -> None:
    async with serving(kind, proxy_protocol=True) as server:
        reader, writer = await within(asyncio.open_connection(*server.address(READY_NAMES[kind])))
        if kind == "ws":
            writer.write(header + REQUEST + masked(Opcode.BINARY, b"hello"))
            await within(reader.readuntil(b"\r\n\r\n"))
            assert await within(reader.readexactly(7)) == b"\x82\x05hello"
        else:
            writer.write(header + b"hello")
            assert await within(reader.readexactly(5)) == b"hello"
        peer = (await server.only()).peer
        assert (peer.address, peer.port, peer.local_address) == ("192.0.2.7", 40_000, "198.51.100.1:1883")
        assert peer.certificate is None
        writer.close()


async def test_the_proxy_itself_has_its_own_address() -> None:
    async with serving(proxy_protocol=True) as server:
        reader, writer = await within(asyncio.open_connection(*server.address()))
        writer.write(b"PROXY UNKNOWN\r\nhello")
        assert await within(reader.readexactly(5)) == b"hello"
        peer = (await server.only()).peer
        assert (peer.address, peer.port) == writer.get_extra_info("sockname")
        writer.close()


async def test_a_certificate_that_the_proxy_verified() -> None:
    field = tlv(0x20, struct.pack("!BI", 0x03, 0) + tlv(0x22, b"device-7"))
    async with serving(proxy_protocol=True) as server:
        reader, writer = await within(asyncio.open_connection(*server.address()))
        writer.write(v2(INET + INET_PORTS + field) + b"hello")
        assert await within(reader.readexactly(5)) == b"hello"
        certificate = (await server.only()).peer.certificate
        assert certificate is not None
        assert (certificate.common_name, certificate.subject) == ("device-7", "CN=device-7")
        writer.close()


@pytest.mark.parametrize("together", [True, False], ids=["in one segment", "apart"])
@pytest.mark.parametrize("header", [LINE, v2(INET + INET_PORTS)], ids=["version 1", "version 2"])
async def test_tls_begins_after_the_header(
    authority: Authority, tls: dict[str, Any], header: bytes, together: bool
) -> None:
    """The ClientHello may come along with the header; the handshake is driven by hand to be sure that it does."""
    context = ssl.create_default_context(cafile=str(authority.ca))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    async with serving("tls", tls=tls, proxy_protocol=True) as server:
        reader, writer = await within(asyncio.open_connection(*server.address("tls")))
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        if together:
            writer.write(header + outgoing.read())
        else:
            writer.write(header)
            await until(lambda: server.context().connections == 1)
            writer.write(outgoing.read())
        await drive(client.do_handshake, reader, writer, incoming, outgoing)
        client.write(b"hello")
        writer.write(outgoing.read())
        assert await drive(lambda: client.read(5), reader, writer, incoming, outgoing) == b"hello"
        peer = (await server.only()).peer
        assert (peer.address, peer.port, peer.transport) == ("192.0.2.7", 40_000, "tls")
        writer.close()


async def drive(
    step: Any,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    incoming: ssl.MemoryBIO,
    outgoing: ssl.MemoryBIO,
) -> Any:
    """Repeat a step of TLS, carrying bytes both ways, until it is done."""
    while True:
        try:
            result = step()
        except ssl.SSLWantReadError:
            if data := outgoing.read():
                writer.write(data)
            incoming.write(await within(reader.read(65_536)))
        else:
            if data := outgoing.read():
                writer.write(data)
            return result


async def closed(server: EchoServer, data: bytes, kind: str = "mqtt") -> None:
    reader, writer = await within(asyncio.open_connection(*server.address(kind)))
    writer.write(data)
    with contextlib.suppress(ConnectionResetError):
        assert await within(reader.read()) == b""
    writer.close()


@pytest.mark.parametrize(
    "data",
    [b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00", b"PROXY TCP4 nonsense\r\n", v2(INET)],
    ids=["no header", "bad line", "short addresses"],
)
async def test_without_a_good_header_it_is_closed_and_counted(data: bytes) -> None:
    async with serving(proxy_protocol=True) as server:
        await closed(server, data)
        await until(lambda: server.context().connections == 0)
        assert server.context().proxy_failures == 1
        assert not server.connections


async def test_a_header_that_never_ends_is_ended(tls: dict[str, Any]) -> None:
    async with serving("tls", tls=tls, proxy_protocol=True, connect_seconds=0.2) as server:
        await closed(server, b"PROXY TCP4 192.0.2.7", "tls")
        await until(lambda: server.context().proxy_failures == 1)


async def test_a_peer_that_leaves_during_the_header() -> None:
    async with serving(proxy_protocol=True) as server:
        for linger in (b"\0\0\0\0\0\0\0\0", b"\1\0\0\0\0\0\0\0"):
            leaving = socket.create_connection(server.address())
            leaving.sendall(b"PROXY TCP4 ")
            leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            leaving.close()
        await until(lambda: server.context().proxy_failures == 2)
        assert server.context().connections == 0
