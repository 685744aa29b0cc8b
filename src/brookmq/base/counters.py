"""What the node counts: plain integers, one attribute each, raised in place and read by operations.

Counted per run of messages or per read, never per byte, so that counting costs nothing on the path of a message.
``HELP`` is the one list of names: `/metrics`, `$SYS` topics and the docs are made from it.
"""

from __future__ import annotations

HELP: dict[str, str] = {
    "connections_opened": "Transport connections accepted",
    "connections_closed": "Transport connections ended, for whatever reason",
    "connects_accepted": "CONNECT packets answered with success",
    "connects_refused": "CONNECT packets answered with an error",
    "disconnects_by_server": "Connections that the server ended with a reason",
    "keep_alive_timeouts": "Connections ended because nothing came within 1.5 times the keep alive",
    "connect_timeouts": "Connections ended because no CONNECT came in time",
    "takeovers": "Connections ended because the same client id connected again",
    "protocol_errors": "Connections ended because the peer broke the protocol",
    "packets_too_large": "Packets refused because they exceed mqtt.packet_size_max",
    "bytes_received": "Bytes read from clients",
    "bytes_sent": "Bytes written to clients",
    "packets_received": "MQTT packets read",
    "publishes_received": "PUBLISH packets received",
    "publishes_received_qos0": "PUBLISH packets received with QoS 0",
    "publishes_received_qos1": "PUBLISH packets received with QoS 1",
    "publishes_received_qos2": "PUBLISH packets received with QoS 2",
    "publishes_duplicate": "PUBLISH packets with QoS 2 that were received before and not handed on again",
    "publishes_denied": "PUBLISH packets that the access rules refused",
    "publishes_without_receiver": "PUBLISH packets that no subscription matched",
    "messages_sent": "PUBLISH packets sent to clients",
    "messages_resent": "PUBLISH packets sent again after a reconnect",
    "messages_queued": "Messages put into the queue of a session",
    "messages_journaled": "Messages given to the journal",
    "messages_lost_to_retention": "Messages that the journal's retention removed before a session had read them",
    "messages_retained": "Retained messages set",
    "messages_delayed": "Delayed messages taken",
    "dropped_queue_full": "Messages dropped because the queue of a session was full",
    "dropped_output_full": "QoS 0 messages dropped because a subscriber did not read",
    "dropped_offline_qos0": "QoS 0 messages for sessions whose client was away",
    "dropped_expired": "Messages dropped because their expiry interval had passed",
    "dropped_too_large": "Messages dropped because they exceed what the receiver takes",
    "dropped_by_hook": "Messages dropped because a plugin said so",
    "dropped_retained_limit": "Retained messages refused by a limit",
    "dropped_delayed_limit": "Delayed messages refused by a limit",
    "subscribes": "Subscriptions granted",
    "subscribes_refused": "Subscriptions refused",
    "unsubscribes": "Subscriptions ended by UNSUBSCRIBE",
    "sessions_created": "Sessions created",
    "sessions_resumed": "Sessions resumed by a reconnect",
    "sessions_ended": "Sessions ended: expired, discarded or not to be kept",
    "wills_published": "Will messages published",
    "publishers_paused": "Times a publisher was not read from because a subscriber was full",
    "subscribers_lagging": "Times a subscriber used up its patience and lost QoS 0 messages instead",
    "connections_refused_limit": "Connections closed at accept because of a limit of the listener",
    "hook_errors": "Errors and time-outs of plugin hooks",
    "topic_cache_misses": "Topics whose receivers had to be worked out by the index",
}


class Counters:
    """One attribute per name of ``HELP``."""

    __slots__ = tuple(HELP)

    def __init__(self) -> None:
        for name in HELP:
            setattr(self, name, 0)

    def as_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in HELP}
