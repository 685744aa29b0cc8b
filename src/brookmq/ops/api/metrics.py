"""The node's figures as JSON; Prometheus reads the same ones at ``/metrics``."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from brookmq.ops.api.parameters import View

router = APIRouter(tags=["metrics"])


class MetricsBody(BaseModel):
    """Counters begin at 0 with the node and only rise; gauges are values of this moment."""

    counters: dict[str, int]
    gauges: dict[str, float]


@router.get("/metrics")
async def get_metrics(view: View) -> MetricsBody:
    """All counters and gauges."""
    return MetricsBody(counters=dict(view.counters()), gauges=dict(view.gauges()))
