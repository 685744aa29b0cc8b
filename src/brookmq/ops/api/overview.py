"""What the overview page shows: the last minutes, then every second what is new."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from brookmq.ops.api.parameters import View
from brookmq.ops.errors import ApiError
from brookmq.ops.history import SAMPLES_MAX, WATCHERS_MAX, History
from brookmq.ops.view import ClientInfo

router = APIRouter(tags=["overview"])

RECENT_CLIENTS = 10


def _history(request: Request) -> History:
    history: History = request.app.state.history
    return history


@router.get("/overview/clients")
async def list_recent_clients(view: View) -> list[ClientInfo]:
    """The clients that connected last, the newest first."""
    return list(view.recent_clients(RECENT_CLIENTS))


@router.get("/overview/samples", response_class=Response, responses={200: {"content": {"application/json": {}}}})
async def list_samples(
    request: Request,
    last: Annotated[int, Query(ge=1, le=SAMPLES_MAX, description="no more than the newest so many")] = SAMPLES_MAX,
) -> Response:
    """One sample for each of the last 300 seconds, oldest first: rates, gauges, readiness."""
    return Response(_history(request).encoded(last), media_type="application/json")


@router.get("/overview/stream", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}})
async def stream_samples(request: Request) -> StreamingResponse:
    """Each new sample as a server-sent event, once a second."""
    history = _history(request)
    if history.watchers >= WATCHERS_MAX:
        raise ApiError(HTTPStatus.TOO_MANY_REQUESTS, f"{WATCHERS_MAX} overviews are open; close one")
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(_events(history), media_type="text/event-stream", headers=headers)


async def _events(history: History) -> AsyncIterator[str]:
    async for sample in history.watch():
        yield f"data: {sample}\n\n"
