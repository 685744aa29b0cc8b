"""Taking a part in steps: each key comes once, with all that the table has of it when it comes."""

from __future__ import annotations

from brookmq.store.table.interface import Entry
from brookmq.store.table.taking import Taken, steps


def test_each_key_comes_with_its_changes_in_order() -> None:
    states = [(b"a", b"1"), (b"b", b"2")]
    ops = [(b"b", b"x"), (b"c", b"new"), (b"b", b"y")]
    assert list(steps(states, ops)) == [
        [Taken(b"a", b"1", [])],
        [Taken(b"b", b"2", [b"x", b"y"])],
        [Taken(b"c", None, [b"new"])],
    ]


def test_nothing_comes_in_no_steps() -> None:
    assert list(steps([], [])) == []


def test_what_is_about_the_same_thing_comes_together() -> None:
    states = [(b"a", b"1"), (b"b", b"2"), (b"a\xffwill", b"3")]
    assert [[taken.key for taken in together] for together in steps(states, [(b"b\xffmore", b"op")])] == [
        [b"a", b"a\xffwill"],
        [b"b", b"b\xffmore"],
    ]


def test_changes_that_are_made_meanwhile_come_with_what_has_not_come() -> None:
    ops: list[Entry] = []
    coming = steps([(b"a", b"1"), (b"b", b"2")], ops)
    assert next(coming) == [Taken(b"a", b"1", [])]
    ops += [(b"a", b"its owner has it"), (b"b", b"x"), (b"a\xffwill", b"that, too"), (b"c", b"new")]
    assert next(coming) == [Taken(b"b", b"2", [b"x"])]
    assert next(coming) == [Taken(b"c", None, [b"new"])]
    ops.append((b"d", b"at the last moment"))
    assert list(coming) == [[Taken(b"d", None, [b"at the last moment"])]]
