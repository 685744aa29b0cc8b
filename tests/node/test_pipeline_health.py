"""What a pipeline told, for how long it holds, and what it means for a rule."""

from __future__ import annotations

from uuid import uuid4

import pytest

from brookmq.base.pipeline_status import ALIVE_S, PipelineStatus
from brookmq.base.rule_documents import Rule, parse_rule
from brookmq.node.pipeline_health import PipelineHealth
from brookmq.ops.rule_view import NewerPipelineError


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def report(started_at: float = 1.0, id: str | None = None, **query: object) -> PipelineStatus:
    queries = [{"name": "rule/hot", **query}] if query else []
    return PipelineStatus.model_validate(
        {"id": id or str(uuid4()), "master": "m", "application": "a", "started_at": started_at, "queries": queries}
    )


def rule(*, enabled: bool = True) -> Rule:
    return parse_rule({"name": "hot", "sql": "s", "enabled": enabled})


def test_a_rule_waits_for_a_pipeline() -> None:
    health = PipelineHealth(clock := Clock())
    assert health.state_of_rule(rule()) == ("waiting for a pipeline", None, None)
    assert health.state_of_rule(rule(enabled=False)) == ("disabled", None, None)
    assert health.told().model_dump(exclude_none=True) == {"alive": False, "queries": []}
    health.tell(report())
    assert health.state_of_rule(rule()) == ("starting", None, None)
    health.tell(report(state="failed", message="no disk", matched=5, lag=2))
    state, message, statistics = health.state_of_rule(rule())
    assert (state, message) == ("failed", "no disk")
    assert statistics is not None
    assert (statistics.matched, statistics.lag) == (5, 2)
    assert health.state_of_rule(rule(enabled=False))[0] == "disabled"
    assert health.told().alive
    clock.now += ALIVE_S + 0.1
    assert health.state_of_rule(rule()) == ("waiting for a pipeline", None, None)
    told = health.told()
    assert not told.alive
    assert told.queries[0].message == "no disk", "what was told last is still there to look at"


def test_the_newer_pipeline_is_the_one_that_counts() -> None:
    health = PipelineHealth(clock := Clock())
    heard: list[int] = []
    health.on_told = lambda: heard.append(health.reports)
    old, new = str(uuid4()), str(uuid4())
    health.tell(report(1.0, old, state="running"))
    health.tell(report(2.0, new, state="starting"))
    with pytest.raises(NewerPipelineError, match="a newer pipeline has taken over: a on m"):
        health.tell(report(1.0, old, state="running"))
    assert health.state_of_rule(rule())[0] == "starting"
    health.tell(report(2.0, new, state="running"))
    assert heard == [1, 2, 3]
    clock.now += ALIVE_S + 0.1
    health.tell(report(1.0, old, state="running"))
    assert health.told().id == old, "the newer one is gone"


def test_the_last_word_of_a_pipeline() -> None:
    health = PipelineHealth(Clock())
    last = report(2.0, state="stopped")
    health.tell(last)
    health.tell(last.model_copy(update={"ended": True}))
    assert not health.told().alive
    assert health.state_of_rule(rule()) == ("waiting for a pipeline", None, None)
    health.tell(report(1.0, state="running"))
    assert health.told().alive, "an older one need not wait until the other is forgotten"
