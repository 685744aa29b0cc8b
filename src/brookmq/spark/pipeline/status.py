"""How queries get on, as the pipeline tells its node and shows it: made of what machine and counters know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from brookmq.base.pipeline_status import QueryState, QueryStatus
from brookmq.spark.pipeline.statistics import Statistics
from brookmq.spark.pipeline.supervising import Query, State, Supervisor
from brookmq.spark.positions import Position


def query_statuses(
    machine: Supervisor,
    statistics: Mapping[str, Statistics],
    ends: Position | None,
    now: float,
    unix_now: float,
    warnings: Mapping[str, str] | None = None,
) -> list[QueryStatus]:
    """All queries by name. ``ends`` are those of the journal, ``now`` is the machine's time."""
    return [
        _query_status(query, statistics.get(name, Statistics()), ends, now, unix_now, (warnings or {}).get(name))
        for name, query in sorted(machine.queries.items())
    ]


def _query_status(
    query: Query, counted: Statistics, ends: Position | None, now: float, unix_now: float, warning: str | None
) -> QueryStatus:
    message = query.message or warning
    if message is None and counted.lost:
        message = f"{counted.lost} messages were gone from the journal before they were read"
    return QueryStatus(
        name=query.name,
        state=shown_state(query),
        message=message,
        restarts=query.restarts,
        batch=counted.batch,
        matched=counted.matched,
        passed=counted.passed,
        failed=counted.failed,
        actions_failed=counted.actions_failed,
        lag=counted.lag(ends) or 0,
        rows_per_second=round(counted.rows_per_second(now), 1),
        batch_ms=counted.batch_ms,
        since=unix_now - (now - query.since),
    )


_SHOWN: Final[dict[State, QueryState]] = {
    State.WAITING: "waiting",
    State.STARTING: "starting",
    State.RUNNING: "running",
    State.FAILED: "failed",
    State.STOPPED: "stopped",
}


def shown_state(query: Query) -> QueryState:
    """A query that is being stopped is over for whoever looks, or on its way to its next start."""
    if query.state is State.STOPPING:
        return "stopped" if query.wish is None else "starting"
    return _SHOWN[query.state]
