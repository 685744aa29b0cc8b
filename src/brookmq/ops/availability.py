"""Is the node alive, can it serve, what does it count: for supervisors, load balancers and Prometheus.

``/healthz`` and ``/readyz`` need no login: whoever may reach the port may know that much.
"""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from brookmq.ops import metrics
from brookmq.ops.api.parameters import View
from brookmq.ops.errors import error_response

checks = APIRouter(tags=["availability"])
prometheus = APIRouter(tags=["metrics"])


@checks.head("/healthz", include_in_schema=False)
@checks.get("/healthz")
async def healthz() -> dict[str, str]:
    """200 while the event loop turns: an answer at all is the proof."""
    return {"status": "ok"}


@checks.head("/readyz", include_in_schema=False)
@checks.get("/readyz", response_model=dict[str, str])
async def readyz(view: View) -> Response:
    """200 while clients can be served, else 503 with the reason."""
    ready, reason = view.ready()
    if not ready:
        return error_response(HTTPStatus.SERVICE_UNAVAILABLE, reason)
    return JSONResponse({"status": "ready"})


@prometheus.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def get_prometheus_metrics(view: View) -> Response:
    """All counters and gauges in Prometheus' text format."""
    return Response(metrics.render(view), media_type=metrics.CONTENT_TYPE)
