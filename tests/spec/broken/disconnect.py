"""Section 3.14: a session that ends with its connection can be made to stay by DISCONNECT."""

from brookmq.broker import requests
from brookmq.broker.channel import Channel
from brookmq.mqtt import packets

FAILS = "test_3_14_disconnect.py::test_a_wrong_disconnect_is_answered_with_one[session-expiry-after-zero]"

_take_disconnect = requests._take_disconnect


def take_disconnect(channel: Channel, packet: packets.Disconnect) -> None:
    requests._session(channel).expiry = 1.0
    _take_disconnect(channel, packet)


requests._take_disconnect = take_disconnect
