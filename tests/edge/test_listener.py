"""Plain listeners: TCP over IPv4 and IPv6, Unix sockets, limits, addresses in use."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from brookmq.base.config.listeners import Listener as ListenerConfig
from brookmq.base.errors import ConfigError
from brookmq.edge.limits import PAUSE_SECONDS_MIN
from tests.edge.echo import EchoServer, serving, until, within


async def connect(address: tuple[str, int]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await within(asyncio.open_connection(*address))


async def closed_by_peer(reader: asyncio.StreamReader) -> bool:
    try:
        return await within(reader.read()) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
async def test_bytes_go_through_and_the_peer_is_known(host: str) -> None:
    async with serving(bind=f"{host}:0", mountpoint="site/") as server:
        reader, writer = await connect(server.address())
        writer.write(b"hello")
        assert await within(reader.readexactly(5)) == b"hello"
        connection = await server.only()
        assert connection.peer.port == writer.get_extra_info("sockname")[1]
        assert connection.peer.address == writer.get_extra_info("sockname")[0]
        assert connection.peer.local_address in server.listeners.addresses()["mqtt"]
        assert (connection.peer.listener, connection.peer.transport) == ("one", "tcp")
        assert (connection.context.mountpoint, connection.context.connections) == ("site/", 1)
        assert connection.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        writer.close()
        await until(lambda: server.context().connections == 0)
        assert server.context().accepted == 1


async def test_a_listener_on_all_addresses_knows_the_one_that_was_used() -> None:
    async with serving(bind="0.0.0.0:0") as server:
        port = server.address()[1]
        _, writer = await connect(("127.0.0.1", port))
        assert (await server.only()).peer.local_address == f"127.0.0.1:{port}"
        writer.close()


async def test_all_kinds_have_their_addresses() -> None:
    configs = {
        "a": ListenerConfig(bind="127.0.0.1:0"),
        "b": ListenerConfig(bind="[::1]:0"),
        "web": ListenerConfig(type="ws", bind="127.0.0.1:0"),
        "off": ListenerConfig(bind="127.0.0.1:1", enable=False),
    }
    async with EchoServer(configs) as server:
        found = server.listeners.addresses()
        assert list(found) == ["mqtt", "ws"]
        assert found["mqtt"][0].startswith("127.0.0.1:")
        assert found["mqtt"][1].startswith("[::1]:")
        assert not any(address.endswith(":0") for addresses in found.values() for address in addresses)


async def test_an_address_in_use_names_the_key_and_leaves_nothing_bound() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        configs = {"first": ListenerConfig(bind="127.0.0.1:0"), "second": ListenerConfig(bind=f"127.0.0.1:{port}")}
        server = EchoServer(configs)
        with pytest.raises(ConfigError) as caught:
            await server.__aenter__()
    assert caught.value.path == "listeners.second.bind"
    assert str(caught.value) == f"listeners.second.bind: 127.0.0.1:{port} is in use by another program"
    with pytest.raises(OSError, match="refused"):
        await connect(server.address())


@pytest.mark.parametrize(
    ("bind", "message"),
    [
        ("192.0.2.1:0", "listeners.one.bind: 192.0.2.1:0 is not an address of this machine"),
        ("no-such-host.invalid:0", "listeners.one.bind: no-such-host.invalid is not the name or address of a host"),
    ],
)
async def test_an_address_that_is_not_ours(bind: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await serving(bind=bind).__aenter__()
    assert str(caught.value) == message


async def test_the_same_port_works_again_at_once() -> None:
    async with serving() as first:
        address = first.address()
        reader, writer = await connect(address)
        writer.write(b"close")  # the server closes first, so the kernel remembers the connection
        assert await closed_by_peer(reader)
        writer.close()
    async with serving(bind=f"127.0.0.1:{address[1]}"):
        pass


async def test_over_the_limit_is_closed_at_once_and_counted() -> None:
    async with serving(connections_max=2) as server:
        kept = [await connect(server.address()) for _ in range(2)]
        await until(lambda: server.context().connections == 2)
        reader, writer = await connect(server.address())
        assert await closed_by_peer(reader)
        writer.close()
        assert (server.context().refused, server.counters.connections_refused_limit) == (1, 1)
        kept[0][1].close()
        await until(lambda: server.context().connections == 1)
        reader, writer = await connect(server.address())
        writer.write(b"in")
        assert await within(reader.readexactly(2)) == b"in"
        writer.close()
        kept[1][1].close()


async def test_the_open_files_limit_all_listeners_together() -> None:
    configs = {"a": ListenerConfig(bind="127.0.0.1:0"), "b": ListenerConfig(type="ws", bind="127.0.0.1:0")}
    async with EchoServer(configs, connections_fit=1) as server:
        _, writer = await connect(server.address())
        await until(lambda: server.context("a").connections == 1)
        reader, refused = await connect(server.address("ws"))
        assert await closed_by_peer(reader)
        assert (server.context("a").refused, server.context("b").refused) == (0, 1)
        writer.close()
        refused.close()


@pytest.mark.parametrize("proxy_protocol", [False, True], ids=["accepted by the loop", "accepted by us"])
async def test_too_fast_waits_and_is_let_in_later(proxy_protocol: bool) -> None:
    header = b"PROXY UNKNOWN\r\n" if proxy_protocol else b""
    loop = asyncio.get_running_loop()
    async with serving(connect_rate_max=20, proxy_protocol=proxy_protocol) as server:
        begin = loop.time()

        async def greet() -> asyncio.StreamWriter:
            reader, writer = await connect(server.address())
            writer.write(header + b"x")
            assert await within(reader.readexactly(1)) == b"x"
            return writer

        writers = await asyncio.gather(*(greet() for _ in range(40)))
        took = loop.time() - begin
        assert took >= 20 / 20 - 4 * PAUSE_SECONDS_MIN  # a second's worth at once, the rest at the rate
        assert server.context().paused_by_rate > 0
        assert server.context().refused == 0
        for writer in writers:
            writer.close()


@pytest.mark.parametrize("proxy_protocol", [False, True], ids=["accepted by the loop", "accepted by us"])
async def test_stop_accepting_keeps_those_who_are_in(proxy_protocol: bool) -> None:
    async with serving(proxy_protocol=proxy_protocol) as server:
        reader, writer = await connect(server.address())
        writer.write((b"PROXY UNKNOWN\r\n" if proxy_protocol else b"") + b"in")
        assert await within(reader.readexactly(2)) == b"in"
        server.listeners.stop_accepting()
        with pytest.raises(OSError, match="refused"):
            await connect(server.address())
        writer.write(b"still")
        assert await within(reader.readexactly(5)) == b"still"
        writer.close()


async def test_stop_accepting_while_accepting_pauses() -> None:
    async with serving(connect_rate_max=1) as server:
        _, writer = await connect(server.address())
        await until(lambda: server.context().paused_by_rate == 1)
        server.listeners.stop_accepting()
        with pytest.raises(OSError, match="refused"):
            await connect(server.address())
        writer.close()


async def test_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "mqtt.sock"
    async with serving("unix", bind=str(path)) as server:
        assert server.listeners.addresses() == {"unix": [str(path)]}
        reader, writer = await within(asyncio.open_unix_connection(str(path)))
        writer.write(b"hello")
        assert await within(reader.readexactly(5)) == b"hello"
        peer = (await server.only()).peer
        assert (peer.address, peer.port, peer.local_address, str(peer)) == ("unix", 0, str(path), "unix")
        writer.close()
    assert not path.exists()


async def test_unix_socket_left_behind_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "mqtt.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    assert path.exists()
    async with serving("unix", bind=str(path)):
        _, writer = await within(asyncio.open_unix_connection(str(path)))
        writer.close()


async def test_unix_socket_that_somebody_serves_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mqtt.sock"
    async with serving("unix", bind=str(path)):
        with pytest.raises(ConfigError) as caught:
            await serving("unix", bind=str(path)).__aenter__()
        assert str(caught.value) == f"listeners.one.bind: {path} is in use by another program"
        _, writer = await within(asyncio.open_unix_connection(str(path)))
        writer.close()


async def test_unix_socket_in_the_place_of_ours_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "mqtt.sock"
    async with serving("unix", bind=str(path)) as server:
        path.unlink()
        path.write_text("somebody else's")
        server.listeners.stop_accepting()
    assert path.exists()


@pytest.mark.parametrize(("make", "message"), [("file", "exists and is not a socket"), ("none", "has no folder")])
async def test_unix_socket_that_cannot_be(tmp_path: Path, make: str, message: str) -> None:
    path = tmp_path / "file"
    if make == "file":
        path.write_text("precious")
    else:
        path = tmp_path / "missing" / "file"
    with pytest.raises(ConfigError, match=message):
        await serving("unix", bind=str(path)).__aenter__()
    assert make == "none" or path.read_text() == "precious"


async def test_many_dropped_at_once_leave_nothing() -> None:
    async with serving() as server:
        sockets = [socket.create_connection(server.address()) for _ in range(200)]
        await until(lambda: server.context().connections == 200)
        for opened in sockets:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            opened.close()
        await until(lambda: server.context().connections == 0)
        assert all(connection.lost for connection in server.connections)
