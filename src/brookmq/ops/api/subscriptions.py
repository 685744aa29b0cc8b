"""Subscriptions of all clients."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from brookmq.ops.api.parameters import PAGE_ROWS_DEFAULT, After, Limit, View, sealed
from brookmq.ops.view import Page, SubscriptionInfo

router = APIRouter(tags=["subscriptions"])


@router.get("/subscriptions")
async def list_subscriptions(
    view: View,
    after: After,
    limit: Limit = PAGE_ROWS_DEFAULT,
    client_id: Annotated[str | None, Query(description="only those of this client")] = None,
    topic_filter: Annotated[str | None, Query(alias="filter", description="only those to exactly this filter")] = None,
) -> Page[SubscriptionInfo]:
    """Subscriptions by client id and filter."""
    return sealed(await view.subscriptions(after, limit, client_id=client_id, topic_filter=topic_filter))
