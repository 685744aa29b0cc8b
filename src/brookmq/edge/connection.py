"""One MQTT connection over a transport: an asyncio protocol that carries a channel.

Bytes go straight through: ``data_received`` hands them to the channel, the outlet hands them to the transport. The
transport's write limit is 0, so that it says at once when the socket takes no more; from then on the outlet collects,
within its own bound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

from brookmq.access.points import Certificate
from brookmq.broker.channel import Channel
from brookmq.broker.outlet import Outlet

if TYPE_CHECKING:
    from brookmq.edge.context import ListenerContext
    from brookmq.edge.hub import Hub

PLAIN = ("tcp", "unix")  # kinds of listeners whose transports may stay open for one direction


class Connection:
    """Made by the hub for a listener, which sets ``peer`` before the transport is there. Invariant: from
    ``connection_made`` to ``connection_lost`` it is one of the hub's connections and counts for its listener."""

    def __init__(self, hub: Hub, context: ListenerContext) -> None:
        self.hub = hub
        self.context = context
        self.peer: Any = None  # a Peer; its listener sets it
        self.transport: Any = None
        self.channel: Channel | None = None
        self.outlet: Outlet | None = None
        self.closing = False
        self.closing_at = 0.0
        self.slot = 0  # of the watch

    # -- asyncio's protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        hub = self.hub
        peer = self.peer
        self.transport = transport
        # Not 0: a TLS transport of uvloop pauses at "as many as the limit", so with 0 it would pause for good at once.
        self.transport.set_write_buffer_limits(1, 0)
        outlet = Outlet(hub.turn, self.transport, hub.settings.output_bytes_max, hub.settings.patience)
        channel = Channel(hub.broker, self, outlet, self.context.name, str(peer))
        channel.mount_template = self.context.mountpoint
        if peer is not None and peer.certificate is not None:
            given = peer.certificate
            channel.certificate = Certificate(given.common_name or "", given.subject, given.serial_number or "")
        # the time to CONNECT begins below all handshakes
        began: float = monotonic() if peer is None else peer.accepted_at
        channel.last_seen = began
        channel.silence_max = hub.settings.connect_timeout
        self.outlet = outlet
        self.channel = channel
        hub.opened(self, began)

    def data_received(self, data: bytes) -> None:
        if self.channel is not None:
            self.channel.receive(data, monotonic())

    def feed(self, data: bytes) -> None:
        """The same, for layers in between that are not transports of asyncio."""
        if self.channel is not None:
            self.channel.receive(data, monotonic())

    def eof_received(self) -> bool:
        """Whether the transport stays open: until those before it in the line are closed. A TLS transport can't."""
        if self.context.kind not in PLAIN or self.hub.closings.free():
            return False
        self.hub.closings.line_up(self.transport.close)
        return True

    def connection_lost(self, error: BaseException | None) -> None:
        self.closing = True
        if self.channel is not None:
            self.channel.lost()
            self.channel = None  # they hold each other: the garbage collector would find them late, if ever
            self.hub.lost(self)
        self.context.closed()

    def pause_writing(self) -> None:
        if self.outlet is not None:
            self.outlet.block()

    def resume_writing(self) -> None:
        if self.outlet is not None:
            self.outlet.unblock()

    # -- the channel's host

    def close(self) -> None:
        """Hand everything to the transport and close; a peer that does not take it is cut off by the hub later."""
        if self.closing:
            return
        self.closing = True
        self.closing_at = monotonic()
        if self.outlet is not None:
            self.outlet.finish()
        self.hub.closings.run(self.transport.close)
        self.hub.closing(self)

    def abort(self) -> None:
        self.transport.abort()

    def pause_reading(self) -> None:
        if not self.closing:
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if not self.closing:
            self.transport.resume_reading()

    def watch(self, seconds: float) -> None:
        """The peer has to be heard within so many seconds from now on."""
        self.hub.watch.look_again(self, monotonic() + seconds)

    def run(self, awaitable: Awaitable[Any], done: Callable[[Any], None]) -> None:
        self.hub.run(awaitable, done)
