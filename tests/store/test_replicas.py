"""Copies of a stream as its leader tells of them."""

from __future__ import annotations

from typing import Any

import pytest

from brookmq.store.replicas import LAG_RECORDS_MAX, SILENT_S_MAX, replicas, replicas_of
from brookmq.store.streams import Stream, stream_names
from tests.store.log_servers import Servers, declared, linked, run, running

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("told", "trouble"),
    [
        ({"current": True, "active": SECOND // 2}, ""),
        ({"current": True, "active": round(SILENT_S_MAX * SECOND)}, ""),
        ({"current": True, "active": 6 * SECOND}, "silent for 6 s"),  # the leader takes some time to see it
        ({"current": False, "active": 100, "lag": LAG_RECORDS_MAX}, ""),
        ({"current": False, "active": 100, "lag": LAG_RECORDS_MAX + 1}, f"{LAG_RECORDS_MAX + 1} records behind"),
        ({"current": True, "active": 100, "lag": LAG_RECORDS_MAX + 1}, ""),
        ({"current": False, "active": 0, "lag": 3}, "not heard of"),  # a leader that was just elected
        ({"current": True, "active": 0}, ""),
        ({"current": True, "active": 100, "offline": True}, "offline"),
    ],
)
def test_what_is_trouble(told: dict[str, Any], trouble: str) -> None:
    [replica] = replicas_of({"cluster": {"leader": "n1", "replicas": [{"name": "n0", **told}]}})
    assert replica.server == "n0"
    assert replica.trouble == trouble


def test_a_lone_server_has_none() -> None:
    assert replicas_of({}) == []
    assert replicas_of({"cluster": {"leader": "n0"}}) == []
    assert replicas_of({"cluster": {"leader": "n0", "replicas": None}}) == []


def test_three_servers_that_are_well() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            for name in ("A", "B"):
                await declared(link, Stream(name=name, subjects=(name.lower(),), replicas=3))
            assert sorted(await stream_names(link)) == ["A", "B"]
            found = await replicas(link, "A")
            assert len(found) == 2
            assert {each.server for each in found} < {"n0", "n1", "n2"}

    with running(3) as servers:
        run(test(servers))
