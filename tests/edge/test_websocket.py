"""WebSocket listeners, with a real client of the `websockets` library and with bytes written by hand."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as websocket_connect
from websockets.exceptions import ConnectionClosed, ConnectionClosedError, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.typing import Subprotocol

from brookmq.edge import websocket as websocket_module
from brookmq.edge.websocket import REQUEST_BYTES_MAX
from tests.edge.certificates import Authority
from tests.edge.echo import EchoServer, serving, until, within

REQUEST = (
    b"GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
)


async def open_client(
    server: EchoServer, offered: tuple[str, ...] = ("mqtt",), path: str = "/mqtt", **options: Any
) -> ClientConnection:
    host, port = server.address("ws")
    options = {
        "compression": None,
        "proxy": None,
        "subprotocols": [Subprotocol(name) for name in offered] or None,
        **options,
    }
    return await within(websocket_connect(f"ws://{host}:{port}{path}", **options))


async def by_hand(server: EchoServer, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await within(asyncio.open_connection(*server.address("ws")))
    writer.write(data)
    return reader, writer


async def answer(server: EchoServer, data: bytes) -> bytes:
    """What the server says to these bytes before it closes."""
    reader, writer = await by_hand(server, data)
    received = await within(reader.read())
    writer.close()
    return received


def masked(opcode: Opcode, data: bytes = b"", *, fin: bool = True) -> bytes:
    return bytes(Frame(opcode, data, fin).serialize(mask=True))


@pytest.mark.parametrize(
    ("offered", "chosen"), [(("mqtt",), "mqtt"), (("mqttv3.1",), "mqttv3.1"), (("mqttv3.1", "other", "mqtt"), "mqtt")]
)
async def test_subprotocol(offered: tuple[str, ...], chosen: str) -> None:
    async with serving("ws") as server, await open_client(server, offered) as client:
        assert client.subprotocol == chosen
        await client.send(b"hello")
        assert await within(client.recv()) == b"hello"
        peer = (await server.only()).peer
        assert (peer.transport, peer.address, peer.port) == ("ws", *client.local_address)
        assert server.context().connections == 1


@pytest.mark.parametrize("offered", [(), ("other",)])
async def test_without_the_subprotocol_no_websocket(offered: tuple[str, ...]) -> None:
    async with serving("ws") as server:
        with pytest.raises(InvalidStatus) as caught:
            await open_client(server, offered)
        assert caught.value.response.status_code == 400
        assert b"subprotocol" in bytes(caught.value.response.body or b"")
        await until(lambda: server.context().connections == 0)
        assert server.context().websocket_failures == 1
        assert not server.connections


async def test_path() -> None:
    async with serving("ws", path="/devices") as server:
        async with await open_client(server, path="/devices?token=1"):
            pass
        with pytest.raises(InvalidStatus) as caught:
            await open_client(server, path="/mqtt")
        assert caught.value.response.status_code == 404
        assert caught.value.response.body == b"MQTT over WebSocket is at /devices.\n"


async def test_compression_is_not_agreed() -> None:
    async with serving("ws") as server, await open_client(server, compression="deflate") as client:
        assert not client.protocol.extensions
        await client.send(b"hello")
        assert await within(client.recv()) == b"hello"


@pytest.mark.parametrize("size", [1, 125, 126, 4096, 4097, 65_536, 1_000_000])
async def test_payload_of_any_size(size: int) -> None:
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    async with serving("ws") as server, await open_client(server, max_size=None) as client:
        await client.send(data)
        received = b""
        while len(received) < size:
            piece = await within(client.recv())
            assert isinstance(piece, bytes)
            received += piece
        assert received == data


async def test_fragments_are_one_stream() -> None:
    async with serving("ws") as server, await open_client(server) as client:
        await client.send([b"one", b"two", b"three"])
        connection = await server.only()
        await until(lambda: bytes(connection.received) == b"onetwothree")


async def test_text_ends_the_connection() -> None:
    """[MQTT-6.0.0-1]"""
    async with serving("ws") as server, await open_client(server) as client:
        await client.send("text")
        with pytest.raises(ConnectionClosedError) as caught:
            await within(client.recv())
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1003
        await until(lambda: server.connections[0].lost)
        assert not server.connections[0].received


async def test_ping_is_answered_with_its_payload() -> None:
    async with serving("ws") as server, await open_client(server) as client:
        await within(await client.ping(b"are you there"))


async def test_pings_of_a_peer_that_does_not_read_are_not_piled_up() -> None:
    async with serving("ws") as server:
        reader, writer = await by_hand(server, REQUEST)
        await within(reader.readuntil(b"\r\n\r\n"))
        connection = await server.only()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        connection.transport.set_write_buffer_limits(high=1000)
        connection.transport.write(bytes(30_000_000))
        assert connection.writing_paused == 1
        waiting = connection.transport.get_write_buffer_size()
        for number in range(1000):
            writer.write(masked(Opcode.PING, b"%d" % number))
        writer.write(masked(Opcode.BINARY, b"after"))
        connection.echo = False
        await until(lambda: bytes(connection.received) == b"after")
        assert connection.transport.get_write_buffer_size() <= waiting
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        await within(reader.readexactly(30_000_000 + 10), 30)
        assert await within(reader.readexactly(5)) == b"\x8a\x03999"
        await until(lambda: connection.writing_resumed == 1)
        writer.close()


async def test_client_closes() -> None:
    async with serving("ws") as server:
        client = await open_client(server)
        connection = await server.only()
        await within(client.close(1001, "bye"))
        assert client.close_code == 1001
        await until(lambda: connection.lost)
        assert server.context().connections == 0


async def test_server_closes_with_a_handshake() -> None:
    async with serving("ws") as server, await open_client(server) as client:
        await client.send(b"close")
        with pytest.raises(ConnectionClosed):
            await within(client.recv())
        assert client.close_code == 1000
        await until(lambda: server.connections[0].lost)


async def test_server_closes_though_the_client_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_module, "CLOSE_SECONDS", 0.1)
    async with serving("ws") as server:
        reader, writer = await by_hand(server, REQUEST + masked(Opcode.BINARY, b"close"))
        received = await within(reader.read())
        assert received.endswith(b"\x88\x02\x03\xe8")
        await until(lambda: server.connections[0].lost)
        writer.close()


async def test_nothing_is_fed_or_written_after_close() -> None:
    async with serving("ws") as server:
        reader, writer = await by_hand(server, REQUEST)
        await within(reader.readuntil(b"\r\n\r\n"))
        connection = await server.only()
        connection.transport.pause_reading()
        connection.transport.close()
        assert connection.transport.is_closing()
        connection.transport.write(b"too late")
        writer.write(masked(Opcode.BINARY, b"too late") + masked(Opcode.CLOSE, b"\x03\xe8"))
        assert await within(reader.read()) == b"\x88\x02\x03\xe8"
        await until(lambda: connection.lost)
        assert not connection.received
        writer.close()


async def test_abort_and_a_lost_peer() -> None:
    async with serving("ws") as server:
        reader, writer = await by_hand(server, REQUEST + masked(Opcode.BINARY, b"abort"))
        assert b"101" in await within(reader.read())
        writer.close()
        reader, writer = await by_hand(server, REQUEST)
        await within(reader.readuntil(b"\r\n\r\n"))
        writer.close()
        await until(lambda: len(server.connections) == 2 and all(connection.lost for connection in server.connections))


async def test_frames_right_behind_the_request() -> None:
    async with serving("ws") as server:
        reader, writer = await by_hand(server, REQUEST + masked(Opcode.BINARY, b"early"))
        head = await within(reader.readuntil(b"\r\n\r\n"))
        assert head.startswith(b"HTTP/1.1 101 ")
        assert b"\r\nSec-WebSocket-Protocol: mqtt\r\n" in head
        assert b"\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head  # RFC 6455, section 1.3
        assert await within(reader.readexactly(7)) == b"\x82\x05early"
        writer.close()


async def test_request_in_single_bytes() -> None:
    async with serving("ws") as server:
        reader, writer = await by_hand(server, b"")
        for at in range(len(REQUEST)):
            writer.write(REQUEST[at : at + 1])
            await asyncio.sleep(0)
        assert b" 101 " in await within(reader.readuntil(b"\r\n\r\n"))
        writer.close()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /mqtt HTTP/1.1\r\nHost: localhost\r\n\r\n", b"426 Upgrade Required"),
        (b"POST /mqtt HTTP/1.1\r\nHost: localhost\r\n\r\n", b"405 Method Not Allowed"),
        (b"GET /mqtt HTTP/1.0\r\n\r\n", b"505 HTTP Version Not Supported"),
        (REQUEST.replace(b"Version: 13", b"Version: 8"), b"400 Bad Request"),
        (REQUEST.replace(b"dGhlIHNhbXBsZSBub25jZQ==", b"short"), b"400 Bad Request"),
        (b"GET\r\n\r\n", b"400 Bad Request"),
        (b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00", b"400 Bad Request"),
        (b"GET /" + b"x" * REQUEST_BYTES_MAX + b" HTTP/1.1", b"400 Bad Request"),
        (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n", b"414 "),
        (REQUEST[:-2] + b"X: " + b"x" * 9000 + b"\r\n\r\n", b"431 Request Header Fields Too Large"),
    ],
    ids=["plain GET", "POST", "HTTP/1.0", "old version", "bad key", "no HTTP", "MQTT", "endless", "line", "header"],
)  # fmt: skip
async def test_what_is_no_handshake_gets_an_http_answer(request_bytes: bytes, status: bytes) -> None:
    async with serving("ws") as server:
        received = await answer(server, request_bytes)
        assert received.startswith(b"HTTP/1.1 " + status)
        assert server.context().websocket_failures == 1
        assert not server.connections


async def test_a_handshake_that_never_ends_is_ended() -> None:
    async with serving("ws", connect_seconds=0.2) as server:
        assert await answer(server, REQUEST[:50]) == b""
        assert server.context().websocket_failures == 1
        reader, writer = await by_hand(server, REQUEST)
        await within(reader.readuntil(b"\r\n\r\n"))
        await asyncio.sleep(0.3)  # beyond the deadline: it was for the handshake alone
        writer.write(masked(Opcode.BINARY, b"late"))
        assert await within(reader.readexactly(6)) == b"\x82\x04late"
        writer.close()


async def test_handshakes_under_way_end_with_the_listener() -> None:
    server = serving("ws")
    await server.__aenter__()
    reader, writer = await by_hand(server, REQUEST[:50])
    await until(lambda: server.context().connections == 1)
    await server.__aexit__()
    with contextlib.suppress(ConnectionResetError):  # as the bytes of the request were read or not
        assert await within(reader.read()) == b""
    writer.close()


async def test_backpressure_reaches_the_connection() -> None:
    async with serving("ws") as server:
        reader, writer = await by_hand(server, REQUEST)
        await within(reader.readuntil(b"\r\n\r\n"))
        connection = await server.only()
        connection.transport.pause_reading()
        writer.write(masked(Opcode.BINARY, b"wait"))
        async with await open_client(server) as other:  # by the time that another was served, this one had its turn
            await other.send(b"done")
            assert await within(other.recv()) == b"done"
        assert not connection.received
        connection.transport.resume_reading()
        await until(lambda: bytes(connection.received) == b"wait")
        assert connection.transport.get_extra_info("peername")
        writer.close()


async def test_secure_websocket(authority: Authority) -> None:
    files = authority.issue("wss", "wss", ("localhost",))
    device = authority.issue("wss-client", "browser")
    context = ssl.create_default_context(cafile=str(authority.ca))
    context.load_cert_chain(device.cert, device.key)
    settings = {
        "cert": str(files.cert),
        "key": str(files.key),
        "ca": str(authority.ca),
        "client_certificates": "optional",
    }
    async with serving("wss", tls=settings) as server:
        host, port = server.address("wss")
        async with websocket_connect(
            f"wss://{host}:{port}/mqtt", subprotocols=[Subprotocol("mqtt")], ssl=context, server_hostname="localhost",
            proxy=None,
        ) as client:  # fmt: skip
            await client.send(b"hello" * 10_000)
            received = b""
            while len(received) < 50_000:
                piece = await within(client.recv())
                assert isinstance(piece, bytes)
                received += piece
            peer = (await server.only()).peer
            assert peer.transport == "wss"
            assert peer.certificate is not None
            assert peer.certificate.common_name == "browser"
