"""paho-mqtt, with its own network thread."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from paho.mqtt.client import Client as Paho
from paho.mqtt.client import MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.interop.broker import WEBSOCKET_PATH
from tests.interop.client import DEADLINE_SECONDS, INFLIGHT_MAX, Client, Received

NAMES = {
    "user_property": "UserProperty",
    "response_topic": "ResponseTopic",
    "correlation_data": "CorrelationData",
    "content_type": "ContentType",
    "message_expiry_interval": "MessageExpiryInterval",
    "payload_format_id": "PayloadFormatIndicator",
    "subscription_identifier": "SubscriptionIdentifier",
}


def connect_properties(session_expiry: int) -> Properties:
    made = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    made.SessionExpiryInterval = session_expiry
    return made


def shut_down(connection: Any) -> None:
    """Break a connection of paho: a socket, or its WebSocket around one."""
    (connection if isinstance(connection, socket.socket) else connection._socket).shutdown(socket.SHUT_RDWR)


def publish_properties(properties: dict[str, Any]) -> Properties | None:
    if not properties:
        return None
    made = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    for name, value in properties.items():
        setattr(made, NAMES[name], value)
    return made


def received_properties(properties: Properties | None) -> dict[str, Any]:
    if properties is None:
        return {}
    return {name: getattr(properties, theirs) for name, theirs in NAMES.items() if hasattr(properties, theirs)}


def to_received(message: MQTTMessage) -> Received:
    properties = received_properties(getattr(message, "properties", None))
    return Received(message.topic, bytes(message.payload), message.qos, bool(message.retain), properties)


class PahoClient(Client):
    """Callbacks come in paho's thread and are carried over to the loop of the test."""

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        self._connected: asyncio.Future[bool] = loop.create_future()
        self._ended: asyncio.Future[int | None] = loop.create_future()
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._paho = paho = self._make()

        def to_loop(call: Callable[..., None]) -> Callable[..., Any]:
            return lambda *arguments: loop.call_soon_threadsafe(call, *arguments)

        def on_message(_: Paho, __: Any, message: MQTTMessage) -> None:
            loop.call_soon_threadsafe(self._messages.put_nowait, to_received(message))

        paho.on_connect = to_loop(self._on_connect)
        paho.on_disconnect = to_loop(self._on_disconnect)
        paho.on_message = on_message
        paho.on_subscribe = to_loop(lambda _, __, mid, codes, ___: self._acknowledged(mid, codes[0].value))
        paho.on_unsubscribe = to_loop(lambda _, __, mid, ___, ____: self._acknowledged(mid, 0))
        paho.on_publish = to_loop(lambda _, __, mid, ___, ____: self._acknowledged(mid, 0))
        options: dict[str, Any] = {"keepalive": self.keep_alive}
        if self.version == 5:
            options["clean_start"] = self.clean
            options["properties"] = connect_properties(self.session_expiry)
        await asyncio.to_thread(paho.connect, self.endpoint.host, self.endpoint.port, **options)
        paho.loop_start()
        async with asyncio.timeout(DEADLINE_SECONDS):
            present = await self._connected
        if self.version > 3:  # MQTT 3.1 has no such flag
            self.session_present = present

    def _make(self) -> Paho:
        paho = Paho(
            CallbackAPIVersion.VERSION2,
            self.client_id,
            clean_session=None if self.version == 5 else self.clean,
            protocol=MQTTProtocolVersion(self.version),
            transport="websockets" if self.endpoint.is_websocket else "tcp",
            reconnect_on_failure=False,
        )
        paho.max_inflight_messages_set(INFLIGHT_MAX)
        if self.endpoint.is_websocket:
            paho.ws_set_options(WEBSOCKET_PATH)
        if context := self.endpoint.tls_context():
            paho.tls_set_context(context)
        if self.will is not None:
            paho.will_set(self.will.topic, self.will.payload, self.will.qos, self.will.retain)
        return paho

    def _on_connect(self, _: Paho, __: Any, flags: Any, reason: Any, ___: Properties | None) -> None:
        if reason.is_failure:
            self._connected.set_exception(ConnectionError(str(reason)))
        else:
            self._connected.set_result(flags.session_present)

    def _on_disconnect(self, _: Paho, __: Any, flags: Any, reason: Any, ___: Properties | None) -> None:
        if not self._ended.done():
            self._ended.set_result(reason.value if flags.is_disconnect_packet_from_server else None)

    def _acknowledged(self, mid: int, code: int) -> None:
        self._waiting.setdefault(mid, asyncio.get_running_loop().create_future()).set_result(code)

    async def _acknowledgement(self, mid: int | None) -> int:
        assert mid is not None
        waiting = self._waiting.setdefault(mid, asyncio.get_running_loop().create_future())
        async with asyncio.timeout(DEADLINE_SECONDS):
            code = await waiting
        del self._waiting[mid]
        return code

    async def subscribe(self, topic_filter: str, qos: int = 0, **options: Any) -> int:
        if self.version == 5:
            names = {
                "no_local": "noLocal",
                "retain_as_published": "retainAsPublished",
                "retain_handling": "retainHandling",
            }
            chosen = SubscribeOptions(qos, **{names[name]: value for name, value in options.items()})
            _, mid = self._paho.subscribe(topic_filter, options=chosen)
        else:
            _, mid = self._paho.subscribe(topic_filter, qos)
        return await self._acknowledgement(mid)

    async def unsubscribe(self, topic_filter: str) -> None:
        _, mid = self._paho.unsubscribe(topic_filter)
        await self._acknowledgement(mid)

    async def publish(self, topic: str, payload: bytes, qos: int = 0, retain: bool = False, **properties: Any) -> None:
        sent = self._paho.publish(topic, payload, qos, retain, publish_properties(properties))
        await self._acknowledgement(sent.mid)

    async def disconnect(self) -> None:
        self._paho.disconnect()
        await self._stop()

    async def drop(self) -> None:
        shut_down(self._paho.socket())
        await self._stop()

    async def ended(self) -> int | None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            reason = await self._ended
        await self._stop()
        return reason

    async def _stop(self) -> None:
        await asyncio.to_thread(self._paho.loop_stop)
