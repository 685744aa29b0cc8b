"""The level of the node's log, changeable while it runs."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict

from brookmq.ops.api.parameters import View
from brookmq.ops.view import LogLevel

router = APIRouter(tags=["node"])


class LogLevelBody(BaseModel):
    """A level of the log."""

    model_config = ConfigDict(extra="forbid")

    level: LogLevel


@router.get("/log-level")
async def get_log_level(view: View) -> LogLevelBody:
    """The level in force."""
    return LogLevelBody(level=view.log_level())


@router.put("/log-level")
async def set_log_level(view: View, body: LogLevelBody) -> LogLevelBody:
    """Change it until the node stops; the configuration is not changed."""
    view.set_log_level(body.level)
    return LogLevelBody(level=view.log_level())
