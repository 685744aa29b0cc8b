"""Retained messages."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from brookmq.ops.api.parameters import PAGE_ROWS_DEFAULT, After, Limit, View, sealed
from brookmq.ops.api.payloads import Encoding, encoded_payload
from brookmq.ops.errors import ApiError
from brookmq.ops.names import NameInPath
from brookmq.ops.view import Page, RetainedInfo

router = APIRouter(tags=["retained"])


class RetainedBody(BaseModel):
    """A retained message with its payload."""

    topic: str
    qos: int
    payload: str
    payload_encoding: Encoding
    payload_bytes: int
    stored_at: datetime
    expires_at: datetime | None


def _not_retained(topic: str) -> ApiError:
    return ApiError(HTTPStatus.NOT_FOUND, f"no retained message on topic {topic!r}")


@router.get("/retained")
async def list_retained(
    view: View,
    after: After,
    limit: Limit = PAGE_ROWS_DEFAULT,
    match: Annotated[str | None, Query(description="only topics that match this topic filter")] = None,
) -> Page[RetainedInfo]:
    """Retained messages without their payloads, grouped by topic level."""
    return sealed(await view.retained(after, limit, match=match))


@router.get("/retained/{topic}")
async def get_retained(view: View, topic: NameInPath) -> RetainedBody:
    """The retained message of a topic."""
    message = await view.retained_message(topic)
    if message is None:
        raise _not_retained(topic)
    payload, encoding = encoded_payload(message.payload)
    return RetainedBody(
        topic=message.topic,
        qos=message.qos,
        payload=payload,
        payload_encoding=encoding,
        payload_bytes=message.payload_bytes,
        stored_at=message.stored_at,
        expires_at=message.expires_at,
    )


@router.delete("/retained/{topic}", status_code=HTTPStatus.NO_CONTENT)
async def delete_retained(view: View, topic: NameInPath) -> None:
    """Forget the retained message of a topic."""
    if not await view.delete_retained(topic):
        raise _not_retained(topic)
