"""Topic filters in use."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from brookmq.ops.api.parameters import PAGE_ROWS_DEFAULT, After, Limit, View, sealed
from brookmq.ops.view import Page, TopicInfo

router = APIRouter(tags=["topics"])


@router.get("/topics")
async def list_topics(
    view: View,
    after: After,
    limit: Limit = PAGE_ROWS_DEFAULT,
    match: Annotated[str | None, Query(description="only filters that match this topic name")] = None,
) -> Page[TopicInfo]:
    """Filters in use, each with the number of its subscribers."""
    return sealed(await view.topics(after, limit, match=match))
