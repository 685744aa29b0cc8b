"""aiomqtt: asyncio around the protocol of paho."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import aiomqtt
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.interop.broker import WEBSOCKET_PATH
from tests.interop.client import DEADLINE_SECONDS, INFLIGHT_MAX, Client
from tests.interop.paho_client import connect_properties, publish_properties, shut_down, to_received


class AiomqttClient(Client):
    """A task moves its messages to the queue of the test."""

    async def connect(self) -> None:
        options: dict[str, Any] = {}
        if self.version == 5:
            options["clean_start"] = self.clean
            options["properties"] = connect_properties(self.session_expiry)
        else:
            options["clean_session"] = self.clean
        if self.endpoint.is_websocket:
            options |= {"transport": "websockets", "websocket_path": WEBSOCKET_PATH}
        will = self.will
        self._client = aiomqtt.Client(
            self.endpoint.host,
            self.endpoint.port,
            identifier=self.client_id,
            protocol=aiomqtt.ProtocolVersion(self.version),
            tls_context=self.endpoint.tls_context(),
            keepalive=self.keep_alive,
            will=aiomqtt.Will(will.topic, will.payload, will.qos, will.retain) if will else None,
            max_inflight_messages=INFLIGHT_MAX,
            timeout=DEADLINE_SECONDS,
            **options,
        )
        await self._client.__aenter__()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        with contextlib.suppress(aiomqtt.MqttError):  # the connection ended
            async for message in self._client.messages:
                topic = message.topic.value
                received = to_received(message)  # type: ignore[arg-type]
                self._messages.put_nowait(received._replace(topic=topic))

    async def subscribe(self, topic_filter: str, qos: int = 0, **options: Any) -> int:
        if self.version == 5:
            names = {
                "no_local": "noLocal",
                "retain_as_published": "retainAsPublished",
                "retain_handling": "retainHandling",
            }
            chosen = SubscribeOptions(qos, **{names[name]: value for name, value in options.items()})
            granted = await self._client.subscribe(topic_filter, options=chosen)
        else:
            granted = await self._client.subscribe(topic_filter, qos)
        code = granted[0]
        return code if isinstance(code, int) else code.value

    async def unsubscribe(self, topic_filter: str) -> None:
        await self._client.unsubscribe(topic_filter)

    async def publish(self, topic: str, payload: bytes, qos: int = 0, retain: bool = False, **properties: Any) -> None:
        await self._client.publish(topic, payload, qos, retain, publish_properties(properties))

    async def disconnect(self) -> None:
        self._reading.cancel()
        await self._client.__aexit__(None, None, None)

    async def drop(self) -> None:
        shut_down(self._client._client.socket())
        await self.ended()

    async def ended(self) -> int | None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self._reading
        with contextlib.suppress(aiomqtt.MqttError):
            await self._client.__aexit__(None, None, None)
        return None
