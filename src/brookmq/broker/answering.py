"""The acknowledgements of one connection go out in the order in which its messages came. [MQTT-4.6.0-2, -3]

One that waits for the store (``acknowledging.py``) makes all behind it wait, in ``unsettled``.
"""

from __future__ import annotations

from collections import deque

from brookmq.broker.acknowledging import Acknowledgement
from brookmq.broker.channel_state import CONNECTED, ChannelState
from brookmq.mqtt import reasons
from brookmq.mqtt.codec import encode_ack
from brookmq.mqtt.kernel import acks


def ticket_for(channel: ChannelState, head: int, ids: bytes, size: int) -> Acknowledgement:
    """An acknowledgement that goes out when it is settled, behind those that came before."""
    session = channel.session
    assert session is not None
    ticket = Acknowledgement(channel, session, head, ids, size, 1)
    if channel.unsettled is None:
        channel.unsettled = deque()
    channel.unsettled.append(ticket)
    channel.unsettled_bytes += size
    return ticket


def acknowledge(channel: ChannelState, head: int, ids: bytes, reason: int) -> None:
    """One that waits for nothing but those before it."""
    if channel.unsettled:
        ticket = ticket_for(channel, head, ids, 0)
        ticket.waits = 0
        ticket.reason = reason
    else:
        _put(channel, head, ids, reason)


def put_settled(channel: ChannelState) -> bool:
    """What is settled goes out, up to the first that is not. True: none is left."""
    unsettled = channel.unsettled
    while unsettled:
        ticket = unsettled[0]
        if ticket.waits > 0:
            return False
        unsettled.popleft()
        channel.unsettled_bytes -= ticket.size
        if channel.state == CONNECTED:
            _put(channel, ticket.head, ticket.ids, ticket.reason)
    return True


def _put(channel: ChannelState, head: int, ids: bytes, reason: int) -> None:
    """MQTT 3 has no words for a message that could not be kept: no acknowledgement, and the connection ends."""
    if reason == reasons.SUCCESS:
        channel.outlet.put(acks(head, ids))
    elif channel.version5:
        for i in range(0, len(ids), 2):
            channel.outlet.put(encode_ack(head >> 4, ids[i] << 8 | ids[i + 1], reason, None, channel.version))
    elif reason == reasons.QUOTA_EXCEEDED:
        channel.end(reason)
    else:
        channel.outlet.put(acks(head, ids))
