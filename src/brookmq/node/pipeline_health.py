"""What the running pipeline has told of itself, in memory: its queries, and whether it is still there.

There is one pipeline at a time. A newer one takes over; the older one is told so when it reports again, and has to end:
both would read for the same names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from brookmq.base.pipeline_status import ALIVE_S, RULE_QUERY, PipelineStatus, QueryStatus
from brookmq.base.rule_documents import Rule
from brookmq.ops.rule_view import NewerPipelineError, PipelineInfo, RuleState, Statistics

WAITING: RuleState = "waiting for a pipeline"


class PipelineHealth:
    """``monotonic`` is the clock for how long ago a report was."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.on_told: Callable[[], None] | None = None  # called after each report
        self.reports = 0
        self._monotonic = monotonic
        self._status: PipelineStatus | None = None
        self._heard_at = 0.0  # unix seconds
        self._heard = 0.0  # by the monotonic clock
        self._queries: Mapping[str, QueryStatus] = {}

    @property
    def alive(self) -> bool:
        known = self._status
        return known is not None and not known.ended and self._monotonic() - self._heard <= ALIVE_S

    def tell(self, status: PipelineStatus) -> None:
        """Take a report; NewerPipelineError when another one has begun later."""
        known = self._status
        if known is not None and self.alive and known.id != status.id and known.started_at > status.started_at:
            raise NewerPipelineError(f"a newer pipeline has taken over: {known.application} on {known.master}")
        self._status = status
        self._heard_at = time.time()
        self._heard = self._monotonic()
        self._queries = {query.name: query for query in status.queries}
        self.reports += 1
        if self.on_told is not None:
            self.on_told()

    def told(self) -> PipelineInfo:
        """The last report, and whether it is recent."""
        if self._status is None:
            return PipelineInfo(alive=False)
        fields: dict[str, Any] = {name: getattr(self._status, name) for name in PipelineStatus.model_fields}
        return PipelineInfo(**fields, alive=self.alive, heard_at=self._heard_at)

    def query(self, name: str) -> QueryStatus | None:
        """What a pipeline that is alive has told of a query."""
        return self._queries.get(name) if self.alive else None

    def state_of(self, prefix: str, name: str, *, enabled: bool) -> tuple[RuleState, str | None, Statistics | None]:
        """State, message and figures of a rule or table."""
        found = self.query(prefix + name)
        statistics = None if found is None else Statistics.of(found)
        if not enabled:
            return "disabled", None, statistics
        if not self.alive:
            return WAITING, None, None
        if found is None:
            return "starting", None, None
        return found.state, found.message, statistics

    def state_of_rule(self, rule: Rule) -> tuple[RuleState, str | None, Statistics | None]:
        return self.state_of(RULE_QUERY, rule.name, enabled=rule.enabled)
