"""The node itself."""

from __future__ import annotations

from fastapi import APIRouter

from brookmq.ops.api.parameters import View
from brookmq.ops.view import NodeInfo

router = APIRouter(tags=["node"])


@router.get("/node")
async def get_node(view: View) -> NodeInfo:
    """Name, role, version, listeners and how many connections fit."""
    return view.info()
