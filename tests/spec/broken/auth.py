"""Sections 3.15 and 4.12: AUTH of a client that named no method is overlooked."""

from brookmq.broker import requests
from brookmq.broker.channel import Channel
from brookmq.mqtt import packets

FAILS = "test_3_15_auth.py::test_auth_without_a_method_is_a_protocol_error"


def re_authenticate(channel: Channel, packet: packets.Auth) -> None:
    pass


requests.re_authenticate = re_authenticate  # type: ignore[attr-defined]
