"""Rows into actions: fallbacks, what happens when none takes them, and batches that come again."""

from __future__ import annotations

from typing import Any

import pytest

from brookmq.spark.actions.interface import ActionError, BatchKey
from brookmq.spark.pipeline.batches import BatchError, BatchWriter, Chain, OnActionFailed


class Frame:
    """Rows that know how often they were kept."""

    def __init__(self) -> None:
        self.story: list[str] = []

    def persist(self) -> Frame:
        self.story.append("persist")
        return self

    def unpersist(self) -> None:
        self.story.append("unpersist")


class Place:
    """An action that keeps keys; ``trouble`` is raised instead."""

    def __init__(self, trouble: Exception | None = None) -> None:
        self.trouble = trouble
        self.keys: list[BatchKey] = []
        self.closed = 0

    def write(self, frame: Any, key: BatchKey) -> int:
        if self.trouble is not None:
            raise self.trouble
        if key in self.keys:
            return 0
        self.keys.append(key)
        return 1

    def close(self) -> None:
        self.closed += 1


def chain(*places: Place) -> Chain:
    return Chain(*((lambda place=place: place) for place in places))


def writer(*chains: Chain, on_action_failed: OnActionFailed = "retry") -> tuple[BatchWriter, list[str]]:
    said: list[str] = []
    return BatchWriter(chains, on_action_failed, said.append), said


KEY = BatchKey("q", 3)


def test_a_single_action_gets_the_rows_as_they_come() -> None:
    place, frame = Place(), Frame()
    found, said = writer(chain(place))
    found.write(frame, KEY)  # type: ignore[arg-type]
    assert (place.keys, frame.story, said) == ([KEY], [], [])


def test_rows_for_several_are_made_once() -> None:
    frame = Frame()
    found, _ = writer(chain(Place()), chain(Place()))
    found.write(frame, KEY)  # type: ignore[arg-type]
    assert frame.story == ["persist", "unpersist"]


def test_a_fallback_takes_what_the_action_does_not() -> None:
    bad, good, frame = Place(ActionError("no")), Place(), Frame()
    found, said = writer(chain(bad, good))
    found.write(frame, KEY)  # type: ignore[arg-type]
    assert (good.keys, said) == ([KEY], [])
    assert frame.story == ["persist", "unpersist"]


def test_an_action_that_cannot_be_made_has_a_fallback_too() -> None:
    good = Place()

    def refuse() -> Place:
        raise ActionError("no such column")

    found, _ = writer(Chain(refuse, lambda: good))
    found.write(Frame(), KEY)  # type: ignore[arg-type]
    assert good.keys == [KEY]


def test_retry_fails_the_batch_and_those_that_have_it_do_not_write_it_again() -> None:
    first, second, frame = Place(), Place(ActionError("db is away")), Frame()
    found, _ = writer(chain(first), chain(second, Place(ActionError("so is the other"))))
    with pytest.raises(BatchError, match="db is away; and its fallback: so is the other") as caught:
        found.write(frame, KEY)  # type: ignore[arg-type]
    assert not caught.value.for_good
    assert frame.story == ["persist", "unpersist"]
    second.trouble = None
    found.write(frame, KEY)  # type: ignore[arg-type]
    assert first.keys == second.keys == [KEY]


def test_stop_is_for_good() -> None:
    found, _ = writer(chain(Place(ActionError("no"))), on_action_failed="stop")
    with pytest.raises(BatchError) as caught:
        found.write(Frame(), KEY)  # type: ignore[arg-type]
    assert caught.value.for_good


def test_continue_goes_on_with_the_others_and_says_so() -> None:
    bad, good = Place(ActionError("no")), Place()
    found, said = writer(chain(bad), chain(good), on_action_failed="continue")
    found.write(Frame(), KEY)  # type: ignore[arg-type]
    assert (good.keys, said) == ([KEY], ["no"])


@pytest.mark.parametrize("on_action_failed", ["retry", "continue", "stop"])
def test_trouble_with_the_rows_is_nobodys_fallback(on_action_failed: OnActionFailed) -> None:
    """The journal could not be read: no action has failed, and nothing may be given up."""
    fallback = Place()
    found, said = writer(chain(Place(ValueError("journal")), fallback), on_action_failed=on_action_failed)
    with pytest.raises(ValueError, match="journal"):
        found.write(Frame(), KEY)  # type: ignore[arg-type]
    assert (fallback.keys, said) == ([], [])


def test_closing_closes_what_was_made() -> None:
    used, unused = Place(), Place()
    found, _ = writer(chain(used, unused))
    found.write(Frame(), KEY)  # type: ignore[arg-type]
    found.close()
    assert (used.closed, unused.closed) == (1, 0)
