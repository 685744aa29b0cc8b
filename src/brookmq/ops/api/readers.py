"""Readers of the journal that told their names: how far they are, and what holds retention back."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from brookmq.ops.api.journal import FILTERS_MAX, SHARDS_MAX, Offset
from brookmq.ops.api.parameters import ENCODABLE, Text, View
from brookmq.ops.errors import ApiError
from brookmq.ops.names import NameInPath
from brookmq.ops.pipeline_view import ReaderInfo

router = APIRouter(tags=["journal"])

NAME_BYTES_MAX = 255
LOST_MAX = (1 << 62) - 1
RANGES_MAX = 1000

Name = Annotated[NameInPath, ENCODABLE]


class ReaderBody(BaseModel):
    """What a reader tells of itself."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"position": {"0": 5000, "1": 4711}}]})

    position: Annotated[
        dict[Annotated[int, Field(ge=0)], Offset],
        Field(max_length=SHARDS_MAX, description="by shard: the first offset that was not read"),
    ]
    filter: Annotated[list[Annotated[Text, Field(max_length=65535)]], Field(max_length=FILTERS_MAX)] = []
    lost: Annotated[
        int | None, Field(ge=0, le=LOST_MAX, description="messages that it found to be gone, in all; none: as before")
    ] = None


class LostBody(BaseModel):
    """What a reader found to be gone."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"ranges": {"0": [[17, 40]]}}]})

    ranges: Annotated[
        dict[Annotated[int, Field(ge=0)], Annotated[list[tuple[Offset, Offset]], Field(max_length=RANGES_MAX)]],
        Field(max_length=SHARDS_MAX, description="by shard: the first offset, and the one behind the last"),
    ]


@router.get("/readers")
async def list_readers(view: View) -> Sequence[ReaderInfo]:
    """All readers, by name."""
    return view.pipeline().readers()


@router.get("/readers/{name}")
async def get_reader(view: View, name: Name) -> ReaderInfo:
    """One reader."""
    for reader in view.pipeline().readers():
        if reader.name == name:
            return reader
    raise _unknown(name)


@router.put("/readers/{name}")
async def put_reader(view: View, name: Name, body: ReaderBody) -> ReaderInfo:
    """Declare a reader, or tell how far it is. Until it is dropped, or silent for `journal.readers_wait`, what it has
    not read is not removed for its age."""
    if not name or len(name.encode()) > NAME_BYTES_MAX:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"path.name: it has 1 to {NAME_BYTES_MAX} bytes")
    try:
        return await view.pipeline().put_reader(name, body.position, body.filter, body.lost)
    except LookupError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"body.position: {error.args[0]}") from None


@router.post("/readers/{name}/lost")
async def lose(view: View, name: Name, body: LostBody) -> ReaderInfo:
    """Offsets that the reader has to skip because they are gone. Each is counted once, however often it is told."""
    try:
        found = await view.pipeline().reader_lost(name, body.ranges)
    except LookupError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"body.ranges: {error.args[0]}") from None
    if found is None:
        raise _unknown(name)
    return found


@router.delete("/readers/{name}", status_code=HTTPStatus.NO_CONTENT)
async def drop_reader(view: View, name: Name) -> None:
    """Forget a reader: it holds nothing back any more."""
    if not await view.pipeline().drop_reader(name):
        raise _unknown(name)


def _unknown(name: str) -> ApiError:
    return ApiError(HTTPStatus.NOT_FOUND, f"no reader {name!r} on this node")
