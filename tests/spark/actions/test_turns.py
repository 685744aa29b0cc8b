"""A connection that one thread uses and another ends."""

from __future__ import annotations

import threading

import pytest

from brookmq.spark.actions.interface import ActionError
from brookmq.spark.actions.turns import Turns


def test_who_is_inside_lets_go_behind_himself() -> None:
    gone: list[str] = []
    turns = Turns("place", lambda: gone.append("gone"))
    with turns.taken():
        closing = threading.Thread(target=turns.close)
        closing.start()
        closing.join(10)
        assert not closing.is_alive(), "closing does not wait"
        assert turns.closing.is_set()
        assert gone == [], "nothing is taken from him"
    assert gone == ["gone"]


def test_closing_lets_go_at_once_when_nobody_is_inside() -> None:
    gone: list[str] = []
    turns = Turns("place", lambda: gone.append("gone"))
    with turns.taken():
        pass
    assert gone == []
    turns.close()
    assert gone == ["gone"]


def test_nobody_comes_in_behind_the_end() -> None:
    turns = Turns("place", lambda: None)
    turns.close()
    with pytest.raises(ActionError, match="place: the pipeline ends"), turns.taken():
        pass


def test_one_comes_in_at_a_time() -> None:
    turns = Turns("place", lambda: None)
    inside: list[int] = []
    most: list[int] = []

    def enter() -> None:
        for _ in range(200):
            with turns.taken():
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert max(most) == 1
