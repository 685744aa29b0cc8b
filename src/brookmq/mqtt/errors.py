"""What goes wrong with a packet: always the peer's fault, always with the reason code that it is told."""

from __future__ import annotations

from brookmq.base.errors import PeerError


class PacketError(PeerError):
    """A packet that breaks the protocol. The message names the packet, the field and what is wrong with it."""
