"""For the program that runs rules and keeps declared tables: what to do, and how it does."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response

from brookmq.base.pipeline_status import PipelineStatus
from brookmq.ops.api.parameters import View
from brookmq.ops.rule_view import PipelineDocuments, PipelineInfo

router = APIRouter(tags=["pipeline"])

Secrets = Annotated[bool, Query(description="with passwords and tokens, which a pipeline needs")]


@router.get("/pipeline", response_model=PipelineDocuments)
async def get_pipeline(view: View, secrets: Secrets = False) -> Response:
    """All rules, schemas, tables and resources; `revision` is another one after each change of them."""
    documents = await view.rules().documents(secrets=secrets)
    return Response(documents.json_bytes, media_type="application/json")


@router.get("/pipeline/status")
async def get_pipeline_status(view: View) -> PipelineInfo:
    """What the pipeline reported last; `alive` is false when that is longer than 15 s ago."""
    return view.rules().pipeline_status()


@router.put("/pipeline/status", status_code=HTTPStatus.NO_CONTENT)
async def put_pipeline_status(view: View, body: PipelineStatus) -> None:
    """A running pipeline reports, about once a second. 409: another one has begun later, so this one has to end."""
    view.rules().tell_pipeline_status(body)
