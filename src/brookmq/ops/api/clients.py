"""Clients: sessions and their connections."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from brookmq.ops.api.parameters import PAGE_ROWS_DEFAULT, After, Limit, View, sealed
from brookmq.ops.errors import ApiError
from brookmq.ops.names import NameInPath
from brookmq.ops.view import ClientDetail, ClientInfo, Page, SubscriptionInfo

router = APIRouter(tags=["clients"])


def _no_client(client_id: str) -> ApiError:
    return ApiError(HTTPStatus.NOT_FOUND, f"no client {client_id!r} on this node")


@router.get("/clients")
async def list_clients(
    view: View,
    after: After,
    limit: Limit = PAGE_ROWS_DEFAULT,
    search: Annotated[str, Query(description="a part of the client id or of the user name")] = "",
    connected: Annotated[bool | None, Query(description="only those that are, or are not, connected")] = None,
) -> Page[ClientInfo]:
    """Clients by client id."""
    return sealed(await view.clients(after, limit, search=search, connected=connected))


@router.get("/clients/{client_id}")
async def get_client(view: View, client_id: NameInPath) -> ClientDetail:
    """One client with its traffic."""
    detail = await view.client(client_id)
    if detail is None:
        raise _no_client(client_id)
    return detail


@router.delete("/clients/{client_id}", status_code=HTTPStatus.NO_CONTENT)
async def kick_client(view: View, client_id: NameInPath) -> None:
    """End the client's connection (MQTT 5 clients are told "administrative action") and its session."""
    if not await view.kick(client_id):
        raise _no_client(client_id)


@router.delete("/clients/{client_id}/data", status_code=HTTPStatus.NO_CONTENT)
async def forget_client(view: View, client_id: NameInPath) -> None:
    """Kick the client and forget everything that is kept for it: session, subscriptions, what waits for it, its will,
    its delayed messages. Retained messages that it published are their topics' values and stay; its client id stays in
    journal records until retention removes them."""
    if not await view.forget(client_id):
        raise _no_client(client_id)


@router.get("/clients/{client_id}/subscriptions")
async def list_client_subscriptions(
    view: View, client_id: NameInPath, after: After, limit: Limit = PAGE_ROWS_DEFAULT
) -> Page[SubscriptionInfo]:
    """The client's subscriptions by filter."""
    if await view.client(client_id) is None:
        raise _no_client(client_id)
    return sealed(await view.subscriptions(after, limit, client_id=client_id))
