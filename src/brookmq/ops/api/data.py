"""A node's data as one file, for backups and for a move to another folder."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from brookmq.ops.api.parameters import View
from brookmq.ops.view import ImportResult

router = APIRouter(tags=["data"])

MEDIA_TYPE = "application/vnd.brookmq.data"


@router.get("/data", response_class=StreamingResponse, responses={200: {"content": {MEDIA_TYPE: {}}}})
async def export_data(
    view: View, journal: Annotated[bool, Query(description="with the messages of the journal")] = False
) -> StreamingResponse:
    """Everything that the node keeps, as one file. The node goes on serving; each session is as it was at one moment
    of the export. A file that does not end with its end mark is not complete."""
    return StreamingResponse(await view.export_data(journal=journal), media_type=MEDIA_TYPE)


@router.put("/data", openapi_extra={"requestBody": {"content": {MEDIA_TYPE: {}}, "required": True}})
async def import_data(
    view: View,
    request: Request,
    replace: Annotated[bool, Query(description="end the sessions that are there, and remove what is kept")] = False,
) -> ImportResult:
    """Take in such a file. The sections of the journal have to come before the sessions. Clients are refused
    meanwhile; a node with sessions refuses the file unless it may replace them."""
    return await view.import_data(request.stream(), replace=replace)
