"""One listener: from an accepted connection, through its layers, to an MQTT connection.

The layers in order, each where the configuration asks for it: limits, PROXY header, TLS, WebSocket. A connection counts
from the moment it is accepted, so that handshakes that never end cannot take more than the limits allow, and each layer
has to be done within the time that a client has for its CONNECT.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

from brookmq.base.config.listeners import Listener as ListenerConfig
from brookmq.base.counters import Counters
from brookmq.base.errors import CallerError
from brookmq.edge.acceptors import SocketAcceptor, TransportAcceptor
from brookmq.edge.context import ListenerContext
from brookmq.edge.limits import Capacity, ConnectRate
from brookmq.edge.peer import Certificate, Peer, join_host_port
from brookmq.edge.proxy_protocol import ProxyHeader, ProxyHeaderError, ProxyHeaderParser
from brookmq.edge.sockets import bind_tcp, bind_unix
from brookmq.edge.tls import TlsContexts
from brookmq.edge.websocket import MqttConnection, WebSocket

TLS_SHUTDOWN_SECONDS = 5.0  # how long a peer may take to answer our close_notify
WARNING_SECONDS = 10.0  # a full listener says so at most this often

log = logging.getLogger("brookmq.edge")


class Connection(MqttConnection, Protocol):
    """What a listener needs of an MQTT connection besides."""

    peer: Peer


class Listener:
    """``[listeners.NAME]``. ``bind`` first, then ``start``."""

    def __init__(
        self,
        name: str,
        config: ListenerConfig,
        make_connection: Callable[[ListenerContext], Connection],
        counters: Counters,
        capacity: Capacity,
        connect_seconds: float,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.context = ListenerContext(name, config.type, config.mountpoint, capacity)
        self._config = config
        self._make_connection = make_connection
        self._counters = counters
        self._capacity = capacity
        self._connect_seconds = connect_seconds
        self._loop = loop
        self._rate = ConnectRate(config.connect_rate_max, loop.time()) if config.connect_rate_max else None
        self._tls: TlsContexts | None = None
        self._acceptors: list[TransportAcceptor | SocketAcceptor] = []
        self._opening: set[asyncio.Task[None] | WebSocket] = set()  # not yet MQTT connections
        self._stopped = False
        self._warn_at = 0.0
        self._local_address: str | None = None  # None: the listener has several, ask the connection
        self._unix_file: tuple[Path, int] | None = None  # the file of a Unix socket and its inode
        self.addresses: list[str] = []  # what it is bound to, with the port that 0 became

    # --- starting and stopping ---

    def bind(self) -> None:
        """Read the certificates, bind and listen. Raises ConfigError with the path of the key."""
        config, key = self._config, f"listeners.{self.context.name}"
        if config.type in {"tls", "wss"}:
            if config.tls is None:
                raise CallerError(f"{key}: the configuration was not checked")
            self._tls = TlsContexts(config.tls, f"{key}.tls", "mqtt" if config.type == "tls" else "http/1.1")
        if config.type == "unix":
            sockets = [bind_unix(config.bind, config.backlog, f"{key}.bind")]
            self.addresses = [config.bind]
            self._unix_file = (Path(config.bind), Path(config.bind).stat().st_ino)
        else:
            sockets = bind_tcp(*config.address, config.backlog, f"{key}.bind")
            self.addresses = [join_host_port(*bound.getsockname()[:2]) for bound in sockets]
        if len(sockets) == 1 and config.bind.rpartition(":")[0] not in {"0.0.0.0", "[::]"}:  # noqa: S104 (compared)
            self._local_address = self.addresses[0]
        for bound in sockets:
            if self._tls is not None or config.proxy_protocol:
                self._acceptors.append(SocketAcceptor(bound, self._socket_arrived, self._starved, self._loop))
            else:
                self._acceptors.append(TransportAcceptor(bound, config.backlog, self._transport_arrived, self._loop))

    async def start(self) -> None:
        """Accept from now on."""
        for acceptor in self._acceptors:
            await acceptor.start()

    def stop_accepting(self) -> None:
        """Let nobody in any more; those who are in stay."""
        self._stopped = True
        for acceptor in self._acceptors:
            acceptor.close()
        if self._unix_file is not None:
            file, inode = self._unix_file
            self._unix_file = None
            if file.exists() and file.stat().st_ino == inode:  # else another process has put its own in the place
                file.unlink()

    def close(self) -> None:
        """Stop accepting and end what has not become an MQTT connection; those connections end by themselves."""
        self.stop_accepting()
        for opening in list(self._opening):
            if isinstance(opening, WebSocket):
                opening.abort()
            else:
                opening.cancel()

    def reload(self) -> None:
        """Read the certificates again. Raises ConfigError when a file is bad, with the old ones still in use."""
        if self._tls is not None:
            self._tls.reload()

    # --- who comes in ---

    def _admit(self) -> bool:
        """Whether one more fits; it counts as a connection from here on."""
        context = self.context
        context.accepted += 1
        if self._stopped:
            return False
        if self._rate is not None and (seconds := self._rate.take(self._loop.time())):
            context.paused_by_rate += 1
            for acceptor in self._acceptors:
                acceptor.pause(seconds)
        if self._capacity.exhausted:
            self._refuse(f"the node has {self._capacity.in_use} connections, no more open files are allowed")
            return False
        if context.connections >= self._config.connections_max:
            self._refuse(f"it has {context.connections} connections (connections_max)")
            return False
        context.opened()
        return True

    def _refuse(self, why: str) -> None:
        self.context.refused += 1
        self._counters.connections_refused_limit += 1
        if self._loop.time() >= self._warn_at:
            self._warn_at = self._loop.time() + WARNING_SECONDS
            log.warning("listener %s closes new connections: %s", self.context.name, why)

    def _starved(self, error: OSError) -> None:
        self._refuse(f"the system refuses to accept: {error.strerror}")

    def _peer(self, address: Any, local: str) -> Peer:
        """From the address as sockets give it: ``(host, port, …)``, or something else for Unix sockets."""
        host, port = address[:2] if isinstance(address, tuple) else ("unix", 0)
        return Peer(host, port, local, self.context.name, self._config.type, self._loop.time())

    def _transport_arrived(self, transport: asyncio.Transport) -> None:
        if not self._admit():
            transport.abort()
            return
        address = transport.get_extra_info("peername")
        if address is None:  # gone already
            self.context.closed()
            transport.abort()
            return
        local = self._local_address or join_host_port(*transport.get_extra_info("sockname")[:2])
        self._hand_over(transport, self._peer(address, local))

    def _hand_over(self, transport: asyncio.Transport, peer: Peer) -> None:
        """The last layers: WebSocket where asked for, then MQTT."""
        protocol: WebSocket | Connection
        if self._config.type in {"ws", "wss"}:
            protocol = self._websocket(peer)
        else:
            protocol = self._connection(peer)
        transport.set_protocol(cast("asyncio.BaseProtocol", protocol))
        protocol.connection_made(transport)

    def _connection(self, peer: Peer) -> Connection:
        connection = self._make_connection(self.context)
        connection.peer = peer
        return connection

    def _websocket(self, peer: Peer) -> WebSocket:
        def accepted() -> MqttConnection:
            self._opening.discard(websocket)
            return self._connection(peer)

        def refused(why: str) -> None:
            self._opening.discard(websocket)
            self.context.websocket_failures += 1
            self.context.closed()
            log.debug("%s from %s: %s", self.context.name, peer, why)

        deadline = peer.accepted_at + self._connect_seconds
        websocket = WebSocket(self._config.path, deadline, accepted, refused, self._loop)
        self._opening.add(websocket)
        return websocket

    # --- PROXY header and TLS, before there is a transport ---

    def _socket_arrived(self, accepted: socket.socket, address: Any) -> None:
        if not self._admit():
            accepted.close()
            return
        task = self._loop.create_task(self._welcome(accepted, address))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _welcome(self, accepted: socket.socket, address: Any) -> None:
        context = self.context
        layer = _Layer(self._hand_over)
        try:
            local = self._local_address or join_host_port(*accepted.getsockname()[:2])
            peer = layer.peer = self._peer(address, local)
            if self._config.proxy_protocol:
                async with asyncio.timeout_at(peer.accepted_at + self._connect_seconds):
                    _apply(await self._read_proxy_header(accepted), peer)
            await self._make_transport(layer, accepted)
        except (ProxyHeaderError, TimeoutError) as error:
            context.proxy_failures += 1
            log.debug("%s from %s: %s", context.name, address, error or "no PROXY header in time")
        except OSError as error:  # SSLError is one, and so is a handshake that takes too long
            context.tls_failures += 1
            log.debug("%s from %s: %s", context.name, address, error)
        finally:
            if not layer.handed_over:
                context.closed()
                accepted.close()

    async def _read_proxy_header(self, accepted: socket.socket) -> ProxyHeader:
        parser = ProxyHeaderParser()
        while True:
            try:
                data = await self._loop.sock_recv(accepted, parser.wanted)
            except ConnectionError as error:
                raise ProxyHeaderError("closed before the PROXY header was complete") from error
            if not data:
                raise ProxyHeaderError("closed before the PROXY header was complete")
            if (header := parser.feed(data)) is not None:
                return header

    async def _make_transport(self, layer: _Layer, accepted: socket.socket) -> None:
        if self._tls is None:
            await self._loop.connect_accepted_socket(lambda: layer, accepted)
            return
        left = layer.peer.accepted_at + self._connect_seconds - self._loop.time()
        await self._loop.connect_accepted_socket(
            lambda: layer,
            accepted,
            ssl=self._tls.current,
            ssl_handshake_timeout=max(0.001, left),
            ssl_shutdown_timeout=TLS_SHUTDOWN_SECONDS,
        )


class _Layer(asyncio.Protocol):
    """The protocol of a transport until TLS is done; then it hands the transport over and is forgotten."""

    peer: Peer

    def __init__(self, hand_over: Callable[[asyncio.Transport, Peer], None]) -> None:
        self._hand_over = hand_over
        self.handed_over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if (certificate := Certificate.of_peercert(transport.get_extra_info("peercert"))) is not None:
            self.peer.certificate = certificate
        self.handed_over = True
        self._hand_over(cast("asyncio.Transport", transport), self.peer)


def _apply(header: ProxyHeader, peer: Peer) -> None:
    """What the proxy told takes the place of what the socket says."""
    if header.source is not None:
        peer.address, peer.port = header.source
    if header.destination is not None:
        peer.local_address = join_host_port(*header.destination)
    if header.common_name is not None:
        peer.certificate = Certificate.of_common_name(header.common_name)
