"""The QoS state of a session against the plainest models of it: a dictionary for the window, a set for open ids."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from brookmq.broker.inflight import (
    FREE,
    PUBACK_DUE,
    PUBCOMP_DUE,
    PUBREC_DUE,
    SIZE_FIRST,
    SIZE_MAX,
    OpenIds,
    Window,
)

STATES = st.sampled_from([PUBACK_DUE, PUBREC_DUE, PUBCOMP_DUE])
STRANGE_IDS = st.sampled_from([0, 1, 2, SIZE_FIRST, SIZE_FIRST + 1, 2 * SIZE_FIRST + 1, 65_535])


def packed(ids: list[int]) -> bytes:
    return b"".join(packet_id.to_bytes(2, "big") for packet_id in ids)


def unpacked(ids: bytes) -> list[int]:
    return [ids[i] << 8 | ids[i + 1] for i in range(0, len(ids), 2)]


class WindowMachine(RuleBasedStateMachine):
    """``model`` has the state of every packet id that is not free."""

    def __init__(self) -> None:
        super().__init__()
        self.window = Window(300)
        self.model: dict[int, int] = {}

    @precondition(lambda self: self.window.room() > 0)
    @rule(share=st.floats(0, 1), state=st.sampled_from([PUBACK_DUE, PUBREC_DUE]))
    def take(self, share: float, state: int) -> None:
        count = max(1, int(self.window.room() * share))
        ids = unpacked(self.window.take(count, state))
        assert len(set(ids)) == count
        assert all(1 <= packet_id <= SIZE_MAX for packet_id in ids)  # [MQTT-2.2.1-3]
        assert not self.model.keys() & set(ids)  # [MQTT-2.2.1-4]
        self.model.update(dict.fromkeys(ids, state))

    @rule(data=st.data(), expected=STATES, state=st.sampled_from([FREE, PUBCOMP_DUE]))
    def acknowledge(self, data: st.DataObject, expected: int, state: int) -> None:
        known = st.sampled_from(sorted(self.model)) if self.model else st.nothing()
        ids = data.draw(st.lists(known | STRANGE_IDS, max_size=8))
        moved = 0
        for packet_id in ids:  # one after the other: an id that stands twice is acknowledged once
            if self.model.get(packet_id, FREE) == expected and expected != state:
                moved += 1
                self.model[packet_id] = state
                if state == FREE:
                    del self.model[packet_id]
            elif self.model.get(packet_id, FREE) == expected:
                moved += 1
        assert self.window.move(packed(ids), expected, state) == moved

    @rule(limit=st.integers(1, 400))
    def agree_on_another_limit(self, limit: int) -> None:
        """The client is back with another receive maximum: there may be more in flight than it allows now."""
        self.window.limit = limit

    @invariant()
    def same_as_the_model(self) -> None:
        self.window.check_invariants()
        assert self.window.count == len(self.model)
        assert self.window.room() == self.window.limit - len(self.model)
        for packet_id in (*self.model, 0, 65_535, SIZE_FIRST):
            assert self.window.state(packet_id) == self.model.get(packet_id, FREE)


TestWindow = WindowMachine.TestCase
TestWindow.settings = settings(max_examples=60, stateful_step_count=40)


def test_all_packet_ids_can_be_in_flight() -> None:
    window = Window(SIZE_MAX)
    assert sorted(unpacked(window.take(SIZE_MAX, PUBACK_DUE))) == [*range(1, SIZE_MAX + 1)]
    assert window.move(packed([4711]), PUBACK_DUE, FREE) == 1
    assert unpacked(window.take(1, PUBREC_DUE)) == [4711]
    window.check_invariants()


def test_ids_are_given_in_turn() -> None:
    """An acknowledgement that comes twice must not meet the next message."""
    window = Window(10)
    given_ids = []
    for _ in range(SIZE_FIRST + 5):
        ids = window.take(1, PUBACK_DUE)
        given_ids += unpacked(ids)
        window.move(ids, PUBACK_DUE, FREE)
    assert given_ids[:SIZE_FIRST] == [*range(1, SIZE_FIRST + 1)]
    assert given_ids[SIZE_FIRST:] == [1, 2, 3, 4, 5]


RUNS = st.lists(st.sampled_from([1, 2, 3, 7, 8, 255, 256, 65_535]), min_size=1, max_size=6)


@given(st.lists(st.tuples(st.booleans(), RUNS), max_size=30))
def test_open_ids_are_a_set(steps: list[tuple[bool, list[int]]]) -> None:
    """A run is opened or released as a whole, or nothing changes and its packets are taken one by one."""
    open_ids, model = OpenIds(), set[int]()
    for opens, ids in steps:
        wanted = set(ids)
        if opens:
            fits = len(wanted) == len(ids) and not wanted & model
            assert open_ids.open(packed(ids)) == (len(ids) if fits else 0)
            model |= wanted if fits else set()
        else:
            fits = len(wanted) == len(ids) and wanted <= model
            assert open_ids.release(packed(ids)) == (len(ids) if fits else 0)
            model -= wanted if fits else set()
        assert open_ids.count == len(model)
        assert open_ids.packet_ids() == sorted(model)
        assert {packet_id for packet_id in (1, 2, 3, 7, 8, 255, 256, 65_535) if open_ids.is_open(packet_id)} == model
