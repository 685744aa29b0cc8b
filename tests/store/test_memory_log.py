"""The log in memory behaves as a store would: answers later, in order, and only what it answered is certain."""

from __future__ import annotations

from collections.abc import Callable

from brookmq.store.errors import Deposed, StoreError
from brookmq.store.memory_log import MemoryLog
from brookmq.store.record import CALLER_KIND_MIN


class Turns:
    """A ``call_soon`` whose calls are made by ``end``."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self.answers: list[int | StoreError] = []

    def end(self) -> list[int | StoreError]:
        while self.calls:
            self.calls.pop(0)()
        answers = list(self.answers)
        self.answers.clear()
        return answers

    def log(self, bytes_max: int | None = None) -> MemoryLog:
        return MemoryLog(self.calls.append, bytes_max)


def test_answers_come_later_and_in_order() -> None:
    turns = Turns()
    log = turns.log()
    log.append(b"a", turns.answers.append)
    log.append(b"b", turns.answers.append, CALLER_KIND_MIN, "index.1")
    assert (turns.answers, log.records, log.unanswered) == ([], {}, 2)
    assert turns.end() == [1, 2]
    assert log.bodies() == [b"a", b"b"]
    assert (log.records[2].kind, log.records[2].subject) == (CALLER_KIND_MIN, "index.1")
    assert (log.unanswered, log.last_sequence) == (0, 2)


def test_answers_that_are_held_back() -> None:
    turns = Turns()
    log = turns.log()
    log.hold()
    for body in (b"a", b"b", b"c"):
        log.append(body, turns.answers.append)
    assert turns.end() == []
    log.release(1)
    log.append(b"d", turns.answers.append)
    assert turns.end() == [1]
    log.release(1)
    log.release()
    assert turns.end() == [2, 3, 4]
    log.append(b"e", turns.answers.append)
    assert turns.end() == [5]
    log.release(7)
    assert turns.end() == []


def test_a_failure_is_the_answer_until_it_is_over() -> None:
    turns = Turns()
    log = turns.log()
    error = Deposed("another owner")
    log.append(b"a", turns.answers.append)
    log.fail(error)
    log.append(b"b", turns.answers.append)
    assert turns.end() == [error, error]
    log.fail(None)
    log.append(b"c", turns.answers.append)
    assert turns.end() == [1]
    assert log.bodies() == [b"c"]


def test_after_a_crash_no_answer_comes_and_what_had_none_may_be_there() -> None:
    turns = Turns()
    log = turns.log()
    for body in (b"a", b"b", b"c"):
        log.append(body, turns.answers.append)
    log.crash(stored=2)
    assert (turns.end(), log.bodies(), log.unanswered) == ([], [b"a", b"b"], 0)
    log.append(b"d", turns.answers.append)
    assert turns.end() == [3]


def test_the_oldest_records_leave_at_the_bound() -> None:
    turns = Turns()
    log = turns.log(bytes_max=10)
    for number in range(5):
        log.append(b"%d234" % number, turns.answers.append)
    assert turns.end() == [1, 2, 3, 4, 5]
    assert list(log.records) == [4, 5]
    assert log.bytes == 8
    log.append(bytes(50), turns.answers.append)
    turns.end()
    assert (list(log.records), log.bytes) == ([6], 50)
