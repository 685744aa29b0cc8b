"""What a running pipeline tells the node about its queries, about once a second.

Counters are since the query's first start under the pipeline that tells (``id``), and so begin at 0 with a new one.
Keys that are not known here are passed over: a pipeline may be newer than the node.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from brookmq.base.rule_documents import RULES_MAX, TABLES_MAX

ALIVE_S: Final = 15.0  # a pipeline that was not heard for longer is gone
MESSAGE_CHARACTERS_MAX: Final = 2_048
QUERIES_MAX: Final = RULES_MAX + TABLES_MAX
RULE_QUERY: Final = "rule/"  # what the names of queries begin with
TABLE_QUERY: Final = "table/"

Count = Annotated[int, Field(ge=0, le=(1 << 62) - 1)]
Measure = Annotated[float, Field(ge=0)]
QueryState = Literal["starting", "running", "failed", "waiting", "stopped"]


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, allow_inf_nan=False)


class QueryStatus(_Told):
    """``matched`` messages came through the filters, ``failed`` could not be decoded, ``passed`` rows came out.
    ``lag`` messages are still to be read. A ``message`` that is too long is cut."""

    name: Annotated[str, Field(pattern=r"^(rule|table)/[A-Za-z][A-Za-z0-9_.-]{0,63}$")]
    state: QueryState
    message: Annotated[str, AfterValidator(lambda text: text[:MESSAGE_CHARACTERS_MAX])] | None = None
    restarts: Count = 0
    batch: Annotated[int, Field(ge=-1, le=(1 << 62) - 1)] = -1
    matched: Count = 0
    passed: Count = 0
    failed: Count = 0
    actions_failed: Count = 0
    lag: Count = 0
    rows_per_second: Measure = 0.0
    batch_ms: Measure = 0.0
    since: Measure = 0.0
    """Unix seconds: from when on it is in this state."""


class PipelineStatus(_Told):
    """All queries of a pipeline; ``id`` is another one each time that it starts."""

    id: Annotated[str, AfterValidator(lambda text: str(UUID(text)))]
    master: Annotated[str, Field(max_length=1024)]
    application: Annotated[str, Field(max_length=1024)]
    started_at: Measure
    queries: Annotated[list[QueryStatus], Field(max_length=QUERIES_MAX)] = Field(default_factory=list)
    ended: bool = False
    """Its last word: nobody has to wait until it is not heard of any more."""

    def document(self) -> dict[str, Any]:
        return self.model_dump(mode="json")
