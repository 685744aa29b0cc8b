"""The journal, for programs that read it from the store: Spark, above all."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field, model_validator

from brookmq.ops.api.parameters import Text, View
from brookmq.ops.errors import ApiError
from brookmq.ops.pipeline_view import JournalInfo

router = APIRouter(tags=["journal"])

FILTERS_MAX = 1000
SHARDS_MAX = 64
OFFSET_MAX = (1 << 48) - 1
UNIX_TIME_MAX = 1e11

Offset = Annotated[int, Field(ge=0, le=OFFSET_MAX)]
UnixTime = Annotated[float, Field(ge=0, le=UNIX_TIME_MAX, allow_inf_nan=False)]


class PlanBody(BaseModel):
    """What a reader wants to see."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"ranges": {"0": [0, 5000]}, "filters": ["sensors/#"], "time": None}]},
    )

    ranges: Annotated[
        dict[Annotated[int, Field(ge=0)], tuple[Offset, Offset]],
        Field(max_length=SHARDS_MAX, description="by shard: the first offset, and the one behind the last"),
    ]
    filters: Annotated[
        list[Annotated[Text, Field(max_length=65535)]],
        Field(max_length=FILTERS_MAX, description="topic filters; none: everything"),
    ] = []
    time: Annotated[
        tuple[UnixTime, UnixTime] | None, Field(description="published at the first of them or later, before the other")
    ] = None

    @model_validator(mode="after")
    def _in_order(self) -> PlanBody:
        for shard, (start, end) in self.ranges.items():
            if end < start:
                raise ValueError(f"ranges.{shard}: it ends before it begins")
        return self


@router.get("/journal")
async def get_journal(
    view: View, credential: Annotated[bool, Query(description="with a way to read it from the store")] = False
) -> JournalInfo:
    """The journal's name, its capture filters, and the offsets that each shard has."""
    return await view.pipeline().journal(credential=credential)


@router.post("/journal/plan")
async def plan_journal(view: View, body: PlanBody) -> dict[str, Any]:
    """Which records to fetch for ranges of offsets. By shard: a list of `[first sequence, last sequence, first offset,
    end offset]`; and under `lost` the number of offsets that retention has taken."""
    try:
        plans = await view.pipeline().journal_plan(body.ranges, body.filters, body.time)
    except LookupError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"body.ranges: {error.args[0]}") from None
    runs: dict[str, Any] = {str(shard): plan.runs for shard, plan in plans.items()}
    return runs | {"lost": {str(shard): plan.lost for shard, plan in plans.items() if plan.lost}}


@router.get("/journal/time/{unix_time}")
async def get_offsets_at_time(
    view: View, unix_time: Annotated[UnixTime, Path(description="seconds since 1970")]
) -> dict[str, int]:
    """By shard, the offset of the first message that was published at this time or later."""
    found = await view.pipeline().journal_time(unix_time)
    return {str(shard): offset for shard, offset in found.items()}
