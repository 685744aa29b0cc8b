"""Publishing rows of a query exactly once: what a program sends again after a crash is dropped where it is known."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Request

from brookmq.ops.api.parameters import ENCODABLE, View
from brookmq.ops.errors import ApiError
from brookmq.ops.names import NameInPath
from brookmq.ops.pipeline_view import SinkPosition

router = APIRouter(tags=["publish"])

MEDIA_TYPE = "application/vnd.brookmq.rows"
QUERY_BYTES_MAX = 1024

Query = Annotated[NameInPath, ENCODABLE]
Partition = Annotated[int, Path(ge=0, le=0xFFFF_FFFF)]


@router.get("/publish/exactly-once/{query}/{partition}")
async def get_published(view: View, query: Query, partition: Partition) -> SinkPosition:
    """The last row up to which all rows of this partition are published; -1: none yet."""
    _check(query)
    return await view.pipeline().sink_position(query, partition)


@router.post(
    "/publish/exactly-once/{query}/{partition}",
    openapi_extra={"requestBody": {"content": {MEDIA_TYPE: {}}, "required": True}},
)
async def publish_exactly_once(view: View, request: Request, query: Query, partition: Partition) -> SinkPosition:
    """Publish rows that are not published yet. The body: batch and number of the first row (8 bytes each, signed, big
    endian), then MQTT 5 PUBLISH packets. The answer comes when all of them are stored."""
    _check(query)
    if request.headers.get("content-type") != MEDIA_TYPE:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"the body has to be {MEDIA_TYPE}")
    return await view.pipeline().publish_rows(query, partition, await request.body())


@router.delete("/publish/exactly-once/{query}", status_code=HTTPStatus.NO_CONTENT)
async def forget_published(view: View, query: Query) -> None:
    """Forget a query that is done: what comes under its name later is published as if it were new. Queries that have
    published nothing for 90 days are forgotten without being told."""
    _check(query)
    await view.pipeline().forget_sink(query)


def _check(query: str) -> None:
    if not query or len(query.encode()) > QUERY_BYTES_MAX:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"path.query: it has 1 to {QUERY_BYTES_MAX} bytes")
