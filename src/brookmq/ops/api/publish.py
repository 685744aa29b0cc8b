"""Publishing a message over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from brookmq.ops.api.parameters import ENCODABLE, Text, View
from brookmq.ops.api.payloads import Encoding, decoded_payload
from brookmq.ops.view import PublishProperties, PublishRequest, PublishResult

router = APIRouter(tags=["publish"])

UINT32_MAX = 0xFFFF_FFFF


class PropertiesBody(BaseModel):
    """The MQTT 5 properties of the message."""

    model_config = ConfigDict(extra="forbid")

    payload_format: Annotated[int | None, Field(ge=0, le=1, description="1: the payload is UTF-8 text")] = None
    message_expiry_s: Annotated[int | None, Field(ge=0, le=UINT32_MAX)] = None
    content_type: Text | None = None
    response_topic: Text | None = None
    correlation_data: Annotated[str | None, Field(description="base64")] = None
    user: Annotated[
        list[tuple[Text, Text]], Field(description="pairs of name and value; names may repeat, the order is kept")
    ] = []

    def to_view(self) -> PublishProperties:
        correlation = self.correlation_data
        return PublishProperties(
            payload_format=self.payload_format,
            message_expiry_s=self.message_expiry_s,
            content_type=self.content_type,
            response_topic=self.response_topic,
            correlation_data=None
            if correlation is None
            else decoded_payload(correlation, "base64", "body.properties.correlation_data"),
            user=tuple(self.user),
        )


class PublishBody(BaseModel):
    """The message."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"topic": "room/7/light", "payload": "on", "qos": 1, "retain": True}]},
    )

    topic: Annotated[str, Field(min_length=1, max_length=65535), ENCODABLE]
    payload: Text = ""
    payload_encoding: Encoding = "plain"
    qos: Annotated[int, Field(ge=0, le=2)] = 0
    retain: bool = False
    properties: PropertiesBody = PropertiesBody()


@router.post("/publish")
async def publish(view: View, body: PublishBody) -> PublishResult:
    """Publish a message; the answer says how many subscriptions of this node got it."""
    request = PublishRequest(
        topic=body.topic,
        payload=decoded_payload(body.payload, body.payload_encoding, "body.payload"),
        qos=body.qos,
        retain=body.retain,
        properties=body.properties.to_view(),
    )
    return await view.publish(request)
