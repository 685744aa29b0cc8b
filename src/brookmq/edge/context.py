"""What a connection knows about the listener that it came by, and what a listener counts."""

from __future__ import annotations

from brookmq.base.config.listeners import ListenerType
from brookmq.base.errors import InvariantError
from brookmq.edge.limits import Capacity


class ListenerContext:
    """Shared by all connections of one listener.

    ``closed`` has to be called once for each connection that was made, when it is lost: the limits count on it.
    """

    __slots__ = (
        "_capacity", "accepted", "connections", "kind", "mountpoint", "name", "paused_by_rate",
        "proxy_failures", "refused", "tls_failures", "websocket_failures",
    )  # fmt: skip

    def __init__(self, name: str, kind: ListenerType, mountpoint: str, capacity: Capacity) -> None:
        self.name = name
        self.kind: ListenerType = kind
        self.mountpoint = mountpoint  # as configured; ${client_id} and ${username} are known at CONNECT
        self._capacity = capacity
        self.connections = 0  # open now, those in a handshake included
        self.accepted = 0  # since the start, those refused included
        self.refused = 0  # closed at accept: the listener or the node was full
        self.paused_by_rate = 0  # times that accepting paused because connections came too fast
        self.proxy_failures = 0  # closed because the PROXY header was missing, wrong or late
        self.tls_failures = 0
        self.websocket_failures = 0

    def opened(self) -> None:
        self.connections += 1
        self._capacity.in_use += 1

    def closed(self) -> None:
        if self.connections == 0:
            raise InvariantError(f"listener {self.name}: more connections closed than were opened")
        self.connections -= 1
        self._capacity.in_use -= 1
