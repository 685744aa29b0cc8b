"""gmqtt, which is asyncio by itself."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any

import gmqtt
from gmqtt.mqtt.constants import MQTTv50, MQTTv311

from tests.interop.client import DEADLINE_SECONDS, Client, Received


class GmqttClient(Client):
    """Reconnecting is off: a test wants to see the connection end."""

    async def connect(self) -> None:
        options: dict[str, Any] = {}
        if self.version == 5:
            options["session_expiry_interval"] = self.session_expiry
        will = self.will
        self._client = client = gmqtt.Client(
            self.client_id,
            clean_session=self.clean,
            will_message=gmqtt.Message(will.topic, will.payload, will.qos, will.retain) if will else None,
            **options,
        )
        client.set_config({"reconnect_retries": 0})
        client.stop_reconnect()
        self._ended = asyncio.Event()
        self._grants: dict[int, asyncio.Future[int]] = {}
        client.on_connect = self._on_connect
        client.on_message = self._on_message
        client.on_subscribe = self._on_subscribe
        client.on_unsubscribe = lambda _, mid, *__: self._grant(mid).set_result(0)
        client.on_disconnect = self._on_disconnect
        async with asyncio.timeout(DEADLINE_SECONDS):
            await client.connect(
                self.endpoint.host,
                self.endpoint.port,
                ssl=self.endpoint.tls_context() or False,
                keepalive=self.keep_alive,
                version=MQTTv50 if self.version == 5 else MQTTv311,
            )

    def _on_disconnect(self, client: gmqtt.Client, *_: Any) -> None:
        client._is_active = False  # or it would connect again, whatever it was told
        self._ended.set()

    def _on_connect(self, _: gmqtt.Client, flags: int, *__: Any) -> None:
        self.session_present = bool(flags & 1)

    def _on_message(self, _: gmqtt.Client, topic: str, payload: bytes, qos: int, properties: dict[str, Any]) -> int:
        retain = bool(properties.pop("retain"))
        properties.pop("dup")
        found = {
            name: values if name == "user_property" else values[0]
            for name, values in properties.items()
            if isinstance(values, list)
        }
        self._messages.put_nowait(Received(topic, bytes(payload), qos, retain, found))
        return 0

    def _on_subscribe(self, _: gmqtt.Client, mid: int, codes: Any, __: Any) -> None:
        self._grant(mid).set_result(codes[0])

    def _grant(self, mid: int) -> asyncio.Future[int]:
        return self._grants.setdefault(mid, asyncio.get_running_loop().create_future())

    async def subscribe(self, topic_filter: str, qos: int = 0, **options: Any) -> int:
        names = {"retain_handling": "retain_handling_options"}
        chosen = {names.get(name, name): value for name, value in options.items()}
        mid = self._client.subscribe(gmqtt.Subscription(topic_filter, qos=qos, **chosen))
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self._grant(mid)

    async def unsubscribe(self, topic_filter: str) -> None:
        mid = self._client.unsubscribe(topic_filter)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self._grant(mid)

    async def publish(self, topic: str, payload: bytes, qos: int = 0, retain: bool = False, **properties: Any) -> None:
        self._client.publish(topic, payload, qos, retain, **properties)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self._client._persistent_storage.wait_empty()

    async def disconnect(self) -> None:
        # What the broker still sends after our side of TLS has ended is an error to asyncio.
        with contextlib.suppress(ssl.SSLError):
            await self._client.disconnect()

    async def drop(self) -> None:
        self._client._connection._transport.abort()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self._ended.wait()

    async def ended(self) -> int | None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self._ended.wait()
        return None
