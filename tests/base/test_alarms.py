"""Alarms: active until they are over, then history; both bounded."""

from __future__ import annotations

from brookmq.base.alarms import Alarms


def test_an_alarm_is_active_until_it_is_over() -> None:
    alarms = Alarms()
    assert alarms.activate("disk_full", {"free": 0}, "the disk is full", 10.0)
    (active,) = alarms.active()
    assert (active.name, active.details, active.message) == ("disk_full", {"free": 0}, "the disk is full")
    assert (active.activated_at, active.deactivated_at) == (10.0, None)
    assert alarms.is_active("disk_full")
    assert alarms.deactivate("disk_full", 20.0)
    assert alarms.active() == []
    (over,) = alarms.history()
    assert (over.name, over.activated_at, over.deactivated_at) == ("disk_full", 10.0, 20.0)


def test_raised_again_it_keeps_its_time_and_takes_the_new_text() -> None:
    alarms = Alarms()
    alarms.activate("a", {"n": 1}, "one", 10.0)
    assert not alarms.activate("a", {"n": 2}, "two", 11.0)
    (active,) = alarms.active()
    assert (active.details, active.message, active.activated_at) == ({"n": 2}, "two", 10.0)


def test_ending_what_is_not_active_is_nothing() -> None:
    alarms = Alarms()
    assert not alarms.deactivate("a", 1.0)
    assert alarms.history() == []


def test_both_lists_are_bounded() -> None:
    alarms = Alarms(active_max=3, history_max=2)
    results = [alarms.activate(f"a{number}", {}, "", float(number)) for number in range(5)]
    assert results == [True, True, True, False, False]
    assert alarms.dropped == 2
    for number in range(3):
        alarms.deactivate(f"a{number}", 9.0)
    assert [alarm.name for alarm in alarms.history()] == ["a2", "a1"]
    alarms.clear_history()
    assert alarms.history() == []


def test_details_are_copied() -> None:
    alarms = Alarms()
    details = {"n": 1}
    alarms.activate("a", details, "", 0.0)
    details["n"] = 2
    assert alarms.active()[0].details == {"n": 1}
