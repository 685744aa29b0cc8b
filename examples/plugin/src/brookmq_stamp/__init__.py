"""Stamps messages with the time at which the node took them, and announces clients that come online."""

from __future__ import annotations

import json
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from brookmq.access.plugins import Plugin, PluginContext
from brookmq.access.points import ClientEvent, ClientInfo
from brookmq.base.message import Message

USER_PROPERTY = b"\x26"


class StampSettings(BaseModel):
    """``plugins.settings.stamp``: checked when the node starts."""

    model_config = ConfigDict(extra="forbid")

    prefix: str = ""
    property: str = Field("received-at", min_length=1, max_length=256)
    announce: str = Field("", pattern="^[^+#\0]*$")


class StampPlugin(Plugin[StampSettings]):
    """One instance per node; everything here runs on the node's event loop."""

    version: ClassVar[str] = "1.0.0"
    settings_model: ClassVar[type[BaseModel]] = StampSettings

    async def start(self, context: PluginContext) -> None:
        self._context = context
        self._prefix = self.settings.prefix.encode()
        self._name = mqtt_string(self.settings.property)
        context.hooks.register("publish", self.stamp, sync=True)
        if self.settings.announce:
            context.hooks.register("client_online", self.announce)

    def stamp(self, client: ClientInfo, message: Message) -> Message | None:
        """A message is shared by all its receivers and must not be changed: a new one takes its place."""
        if not message.topic.startswith(self._prefix):
            return None  # as it is
        return Message(
            message.topic,
            message.payload,
            message.qos,
            message.retain,
            message.properties + USER_PROPERTY + self._name + mqtt_string(f"{message.published_at:.3f}"),
            message.expires_at,
            message.published_at,
            message.client_id,
            message.username,
        )

    async def announce(self, event: ClientEvent) -> None:
        payload = json.dumps({"client_id": event.client.client_id, "at": event.at}).encode()
        await self._context.publish(Message(self.settings.announce.encode(), payload, 0))


def mqtt_string(text: str) -> bytes:
    """A string as MQTT writes it: two bytes of length, then UTF-8."""
    encoded = text.encode()
    return len(encoded).to_bytes(2, "big") + encoded
