"""What needs somebody's attention."""

from __future__ import annotations

from fastapi import APIRouter

from brookmq.ops.api.parameters import View
from brookmq.ops.view import AlarmInfo

router = APIRouter(tags=["node"])


@router.get("/alarms")
async def list_alarms(view: View) -> list[AlarmInfo]:
    """The alarms that are raised now, the oldest first."""
    return list(view.alarms())
