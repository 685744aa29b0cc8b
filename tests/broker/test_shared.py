"""Shared groups: each strategy, members that are away, members that come and go."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.base.errors import CallerError
from brookmq.broker import shared
from brookmq.broker.shared import STRATEGIES, SharedGroup


class FakeSession:
    def __init__(self) -> None:
        self.outlet: object | None = object()


class FakeMember:
    def __init__(self, name: str) -> None:
        self.name = name
        self.session = FakeSession()
        self.qos = 1

    def leave_connection(self) -> None:
        self.session.outlet = None

    def __repr__(self) -> str:
        return self.name


def make(strategy: str, count: int) -> tuple[SharedGroup, list[FakeMember]]:
    group = SharedGroup("g", "t/#", strategy, Random(7))
    members = [FakeMember(f"m{index}") for index in range(count)]
    for member in members:
        group.add(member)
    return group, members


@pytest.fixture(params=sorted(STRATEGIES))
def strategy(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_an_empty_group_has_nobody(strategy: str) -> None:
    group, _ = make(strategy, 0)
    assert group.pick("c", b"t") is None


def test_a_single_member_gets_everything(strategy: str) -> None:
    group, (only,) = make(strategy, 1)
    assert all(group.pick(f"c{index}", b"t/%d" % index) is only for index in range(10))


def test_members_that_are_away_are_left_out(strategy: str) -> None:
    group, members = make(strategy, 4)
    members[0].leave_connection()
    members[2].leave_connection()
    picked = {group.pick(f"c{index}", b"t/%d" % index) for index in range(200)}
    assert picked == {members[1], members[3]}


def test_when_all_are_away_one_still_gets_it(strategy: str) -> None:
    group, members = make(strategy, 3)
    for member in members:
        member.leave_connection()
    assert group.pick("c", b"t") in members


def test_excluded_members_get_nothing(strategy: str) -> None:
    group, members = make(strategy, 3)
    for index in range(20):
        assert group.pick(f"c{index}", b"t/%d" % index, (members[0], members[2])) is members[1]
    assert group.pick("c", b"t", members) is None


def test_a_member_that_left_gets_nothing_more(strategy: str) -> None:
    group, members = make(strategy, 3)
    group.pick("c", b"t")
    assert group.remove(members[1])
    assert not group.remove(members[1])
    assert group.members == [members[0], members[2]]
    assert all(group.pick(f"c{index}", b"t/%d" % index) is not members[1] for index in range(50))


def test_adding_twice_is_adding_once(strategy: str) -> None:
    group, members = make(strategy, 2)
    group.add(members[0])
    assert group.members == members


def test_an_unknown_strategy_is_a_bug() -> None:
    with pytest.raises(CallerError):
        SharedGroup("g", "t", "fastest", Random(1))


@pytest.mark.parametrize("name", ["round_robin", "local"])
def test_round_robin_goes_round(name: str) -> None:
    group, members = make(name, 3)
    assert [group.pick("c", b"t") for _ in range(7)] == [*members, *members, members[0]]


def test_round_robin_steps_over_a_member_that_is_away() -> None:
    group, members = make("round_robin", 3)
    members[1].leave_connection()
    assert [group.pick("c", b"t") for _ in range(4)] == [members[0], members[2], members[0], members[2]]


def test_round_robin_keeps_its_place_when_a_member_leaves() -> None:
    group, (first, second, third) = make("round_robin", 3)
    assert group.pick("c", b"t") is first
    assert group.pick("c", b"t") is second
    group.remove(first)
    assert group.pick("c", b"t") is third
    group.remove(third)
    assert group.pick("c", b"t") is second


def test_random_is_fair_and_follows_its_seed() -> None:
    group, members = make("random", 4)
    picks = [group.pick("c", b"t") for _ in range(4_000)]
    assert all(800 < count < 1_200 for count in Counter(picks).values())
    again, _ = make("random", 4)
    assert [str(again.pick("c", b"t")) for _ in range(100)] == [str(member) for member in picks[:100]]
    assert set(picks) == set(members)


def test_sticky_keeps_a_publishers_member() -> None:
    group, _ = make("sticky", 5)
    first = {f"c{index}": group.pick(f"c{index}", b"t") for index in range(50)}
    assert len(set(first.values())) == 5  # publishers are spread
    assert all(group.pick(client_id, b"other") is member for client_id, member in first.items())


def test_sticky_moves_when_its_member_is_away_and_stays_there() -> None:
    group, _ = make("sticky", 3)
    before = group.pick("c", b"t")
    before.leave_connection()
    after = group.pick("c", b"t")
    assert after is not before
    before.session.outlet = object()
    assert group.pick("c", b"t") is after


def test_sticky_remembers_a_bounded_number_of_publishers() -> None:
    group, members = make("sticky", 2)
    for index in range(shared.STICKY_PUBLISHERS_MAX + 500):
        assert group.pick(f"c{index}", b"t") in members
    assert group.remembered <= shared.STICKY_PUBLISHERS_MAX


@pytest.mark.parametrize("name", ["hash_client", "hash_topic"])
def test_hashes_stay_and_spread(name: str) -> None:
    group, members = make(name, 4)
    keys = [(f"client-{index}", b"t/%d" % index) for index in range(400)]
    picks = [group.pick(*key) for key in keys]
    assert [group.pick(*key) for key in keys] == picks
    assert all(50 < count < 150 for count in Counter(picks).values())
    assert set(picks) == set(members)


def test_hashes_look_at_their_own_key_only() -> None:
    group, _ = make("hash_client", 4)
    assert len({group.pick("same", b"t/%d" % index) for index in range(50)}) == 1
    group, _ = make("hash_topic", 4)
    assert len({group.pick(f"c{index}", b"same") for index in range(50)}) == 1


def test_a_member_that_is_away_moves_only_its_own_share() -> None:
    group, members = make("hash_topic", 4)
    before = {index: group.pick("c", b"t/%d" % index) for index in range(200)}
    members[2].leave_connection()
    after = {index: group.pick("c", b"t/%d" % index) for index in range(200)}
    assert all(before[index] is members[2] or before[index] is after[index] for index in range(200))


actions = st.lists(st.tuples(st.sampled_from("arox"), st.integers(0, 5)), max_size=60)


@given(st.sampled_from(sorted(STRATEGIES)), actions)
def test_whatever_happens_a_pick_is_a_fitting_member(strategy: str, steps: list[tuple[str, int]]) -> None:
    group = SharedGroup("g", "t", strategy, Random(1))
    known = [FakeMember(f"m{index}") for index in range(6)]
    inside: list[FakeMember] = []
    for action, index in steps:
        member = known[index]
        if action == "a":
            group.add(member)
            inside += [member] if member not in inside else []
        elif action == "r":
            group.remove(member)
            inside = [other for other in inside if other is not member]
        else:
            member.session.outlet = object() if action == "o" else None
        assert group.members == inside
        online = [other for other in inside if other.session.outlet is not None]
        picked = group.pick(f"c{index}", b"t")
        assert picked in online if online else picked in (inside or [None])
