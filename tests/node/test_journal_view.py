"""A real node that is asked for its journal, and a reader that fetches it from the store as it was told to."""

from __future__ import annotations

import asyncio
import json
import time
from http import HTTPStatus
from typing import Any

import httpx
import nats
import pytest
from nats.aio.msg import Msg

from brookmq.mqtt.topics import matches
from brookmq.store.journal.batch import Batch, decode_batch
from brookmq.store.record import HEADER_BYTES
from tests.harness.fixtures import NodeMaker, make_node
from tests.harness.node import Node
from tests.harness.raw import Client

__all__ = ["make_node"]  # a fixture

CONFIG = """
[journal]
capture = ["sensors/#", "rare/x"]
shards = 2
"""
WAIT_S = 60.0


def api(node: Node) -> httpx.Client:
    return httpx.Client(base_url="http://{}:{}/api/v1".format(*node.http), timeout=WAIT_S, trust_env=False)


async def fetch(access: dict[str, Any], shard: dict[str, Any], runs: list[list[int]]) -> list[Batch]:
    """All batches in some runs of a shard."""
    client = await nats.connect(
        access["servers"],
        user=access["user"],
        password=access["password"],
        inbox_prefix=access["inbox"].encode(),
    )
    found: list[Batch] = []
    try:
        for first, last, _, _ in runs:
            answers: asyncio.Queue[Msg] = asyncio.Queue()
            inbox = client.new_inbox()
            subscription = await client.subscribe(inbox, cb=answers.put)
            query = {"seq": first, "batch": last - first + 1, "next_by_subj": shard["subject"]}
            await client.publish(f"$JS.API.DIRECT.GET.{shard['stream']}", json.dumps(query).encode(), inbox)
            while "Status" not in ((message := await answers.get()).headers or {}):
                assert message.headers is not None
                sequence = int(message.headers["Nats-Sequence"])
                if sequence <= last:
                    found.append(decode_batch(shard["shard"], sequence, message.data[HEADER_BYTES:]))
            await subscription.unsubscribe()
    finally:
        await client.close()
    return found


def read(http: httpx.Client, filters: list[str]) -> set[str]:
    """All that was captured for some filters, as a reader outside of the node gets it."""
    journal = http.get("/journal", params={"credential": "true"}).json()
    ranges = {str(shard["shard"]): [shard["first"], shard["end"]] for shard in journal["shards"]}
    plan = http.post("/journal/plan", json={"ranges": ranges, "filters": filters}).json()
    assert plan["lost"] == {}
    found: set[str] = set()
    for shard in journal["shards"]:
        runs = plan[str(shard["shard"])]
        batches = asyncio.run(asyncio.wait_for(fetch(journal["store"], shard, runs), WAIT_S))
        for group in (group for batch in batches for group in batch.groups if group.captured):
            if not filters or any(matches(filter.encode(), group.topic) for filter in filters):
                found.add(group.topic.decode())
    return found


def test_a_reader_finds_what_was_captured(make_node: NodeMaker) -> None:
    node = make_node(CONFIG)
    began = time.time()
    with Client(node.mqtt).connect() as client, api(node) as http:
        empty = http.get("/journal").json()
        assert empty["capture"] == ["sensors/#", "rare/x"]
        assert [(shard["first"], shard["end"]) for shard in empty["shards"]] == [(0, 0), (0, 0)]
        assert empty["store"] is None
        for number in range(50):
            client.publish(f"sensors/{number}", b"x", qos=1)
        client.publish("rare/x", b"x", qos=1)
        client.publish("elsewhere", b"x", qos=1)
        shards = http.get("/journal").json()["shards"]
        assert sum(shard["end"] for shard in shards) == 51
        assert read(http, []) == {f"sensors/{number}" for number in range(50)} | {"rare/x"}
        assert read(http, ["sensors/+"]) == {f"sensors/{number}" for number in range(50)}
        assert read(http, ["sensors/7", "rare/#"]) == {"sensors/7", "rare/x"}
        assert read(http, ["elsewhere"]) == set()
        assert http.get(f"/journal/time/{began - 1}").json() == {"0": 0, "1": 0}
        ends = {str(shard["shard"]): shard["end"] for shard in shards}
        assert http.get(f"/journal/time/{time.time() + 60}").json() == ends
        rare = http.post("/journal/plan", json={"ranges": {"0": [0, 99], "1": [0, 99]}, "filters": ["rare/#"]}).json()
        assert sum(len(rare[shard]) for shard in ("0", "1")) == 1


def test_the_journal_keeps_its_name_and_a_new_one_has_another(make_node: NodeMaker) -> None:
    node = make_node(CONFIG)
    with api(node) as http:
        name = http.get("/journal").json()["journal"]
    node.stop()
    again = make_node(CONFIG, arguments=("--data-dir", str(node.folder / "data")))
    with api(again) as http:
        assert http.get("/journal").json()["journal"] == name
    with api(make_node(CONFIG)) as http:
        assert http.get("/journal").json()["journal"] != name


def test_a_filter_that_is_none_and_a_shard_that_is_not_there(make_node: NodeMaker) -> None:
    with api(make_node(CONFIG)) as http:
        for body in ({"ranges": {}, "filters": ["a/#/b"]}, {"ranges": {"2": [0, 1]}}):
            assert http.post("/journal/plan", json=body).status_code == HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize("with_reader", [False, True])
def test_servers_of_somebody_else_need_a_user_for_readers(make_node: NodeMaker, with_reader: bool) -> None:
    """The store of one node is the servers of another, which takes over: that is what external servers look like."""
    first = make_node(CONFIG)
    with api(first) as http:
        assert http.get("/journal").status_code == HTTPStatus.OK, "its store is there"
        address = http.get("/node").json()["store"]["addresses"][0]
    known = json.loads((first.folder / "data" / "store" / "credentials").read_text())
    reader = 'reader_user = "somebody"\nreader_password = "x"\n' if with_reader else ""
    who = f'user = "{known["user"]}"\npassword = "{known["password"]}"\n'
    config = f'[store]\nservers = ["{address}"]\n{who}{reader}{CONFIG}'
    with api(make_node(config)) as http:
        answer = http.get("/journal", params={"credential": "true"})
        if with_reader:
            access = answer.json()["store"]
            assert (access["servers"], access["user"], access["password"]) == ([address], "somebody", "x")
            assert access["expires_at"] is None
        else:
            assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
            assert "store.reader_user" in answer.json()["message"]
    with api(first) as http:
        deadline = time.monotonic() + WAIT_S
        while (answer := http.get("/journal")).status_code != HTTPStatus.SERVICE_UNAVAILABLE:
            assert time.monotonic() < deadline, "a node without its store does not speak for the journal"
        assert "another node has taken over" in answer.json()["message"]


def test_a_declared_reader_is_there_after_a_crash(make_node: NodeMaker) -> None:
    node = make_node(CONFIG)
    with Client(node.mqtt).connect() as client, api(node) as http:
        for number in range(20):
            client.publish(f"sensors/{number}", b"x", qos=1)
        assert http.get("/readers").json() == []
        told = http.put("/readers/query", json={"position": {"0": 1}, "filter": ["sensors/#"]}).json()
        assert (told["position"], told["lag"], told["alive"]) == ({"0": 1, "1": 0}, 19, True)
        assert http.put("/readers/query", json={"position": {"2": 1}}).status_code == HTTPStatus.BAD_REQUEST
        assert (
            http.put("/readers/other", json={"position": {}, "filter": ["#/a"]}).status_code == HTTPStatus.BAD_REQUEST
        )
        assert http.put("/readers/other", json={"position": {}}).json()["lag"] == 20
        assert http.delete("/readers/other").status_code == HTTPStatus.NO_CONTENT
    node.kill()
    again = make_node(CONFIG, arguments=("--data-dir", str(node.folder / "data")))
    with api(again) as http:
        http.get("/journal")
        deadline = time.monotonic() + WAIT_S
        while not (readers := http.get("/readers").json()):
            assert time.monotonic() < deadline, "the readers are known again"
        assert [(reader["name"], reader["lag"]) for reader in readers] == [("query", 19)]
        metrics = httpx.get("http://{}:{}/metrics".format(*again.http), timeout=WAIT_S, trust_env=False).text
        assert 'brookmq_reader_lag{reader="query"} 19\n' in metrics
