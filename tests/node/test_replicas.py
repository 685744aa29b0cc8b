"""A store that does not follow the others is alarmed, and the alarm ends when it does again."""

from __future__ import annotations

import pytest

from brookmq.base.alarms import Alarms
from brookmq.node.replicas import ReplicaJudge
from brookmq.store.replicas import Replica
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.wire import KEPT
from tests.node.watching import WatchedStore, until
from tests.store.log_servers import running

WELL = Replica("n1", current=True, offline=False, silent_s=0.5, lag=0)
SILENT = Replica("n1", current=True, offline=False, silent_s=7.0, lag=0)
OTHER = Replica("n2", current=True, offline=False, silent_s=0.5, lag=0)
ALARM = "store_replica_behind/n1"


@pytest.fixture
def alarms() -> Alarms:
    return Alarms()


@pytest.fixture
def judge(alarms: Alarms) -> ReplicaJudge:
    return ReplicaJudge(alarms)


def test_two_looks_make_an_alarm_and_one_ends_it(judge: ReplicaJudge, alarms: Alarms) -> None:
    judge.looked({"A": [SILENT, OTHER], "B": [WELL, OTHER]}, True, 1.0)
    assert alarms.active() == []
    judge.looked({"A": [SILENT, OTHER], "B": [WELL, OTHER]}, True, 2.0)
    [alarm] = alarms.active()
    assert alarm.name == ALARM
    assert alarm.details == {"server": "n1", "streams": {"A": "silent for 7 s"}}
    assert alarm.message.startswith("the store n1 does not have the newest of A (silent for 7 s): ")
    judge.looked({"A": [WELL, OTHER], "B": [WELL, OTHER]}, True, 3.0)
    assert alarms.active() == []
    assert [each.deactivated_at for each in alarms.history()] == [3.0]


def test_what_passes_between_two_looks_is_nothing(judge: ReplicaJudge, alarms: Alarms) -> None:
    for now in range(5):
        judge.looked({"A": [SILENT if now % 2 else WELL]}, True, now)
        assert alarms.active() == []


def test_a_look_that_was_cut_short_raises_and_ends_nothing_by_itself(judge: ReplicaJudge, alarms: Alarms) -> None:
    judge.looked({"A": [SILENT]}, False, 1.0)
    judge.looked({}, False, 2.0)
    judge.looked({"A": [SILENT]}, False, 3.0)
    assert alarms.is_active(ALARM)
    judge.looked({"B": [WELL]}, False, 4.0)
    assert alarms.is_active(ALARM)
    judge.looked({"A": [WELL], "B": [WELL]}, True, 5.0)
    assert not alarms.is_active(ALARM)


def test_many_streams_are_counted(judge: ReplicaJudge, alarms: Alarms) -> None:
    for now in range(2):
        judge.looked({name: [SILENT] for name in "ABCDEFG"}, True, now)
    [alarm] = alarms.active()
    assert "D (silent for 7 s) and 3 more" in alarm.message


def test_a_killed_store_of_three_is_alarmed_until_it_is_back(make_node: NodeMaker, client: ClientMaker) -> None:
    with running(3, room="100GB") as servers:
        node = make_node(f'[store]\nservers = {servers.urls}\nwait = "20s"\n[journal]\nshards = 2')
        with WatchedStore(node) as watched:
            watched.until_ready()
            reader = client(5, "reader", to=node, **KEPT)
            reader.subscribe("kept/#", qos=1)
            reader.disconnect()
            assert watched.alarms() == {}
            servers.kill(1)
            took = until(lambda: ALARM in watched.alarms(), "the alarm")
            print(f"{took:.1f} s after the kill: {watched.alarms()[ALARM]}")
            until(lambda: "JOURNAL_0 (" in watched.alarms().get(ALARM, ""), "it names streams")
            client(5, to=node).publish("kept/a", b"two of three", qos=1)
            assert not [name for name in watched.alarms() if name.startswith("store_replica") and name != ALARM]
            servers.start(1)
            print(f"over {until(lambda: watched.alarms() == {}, 'the alarm is over'):.1f} s after the start")
            watched.until_ready()
