"""The appender against a simulated store: lost and late answers, copies, stale reads, other owners, all from a seed."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

import pytest

from brookmq.base.errors import CallerError, InvariantError
from brookmq.store.appender import (
    FULL_PAUSE_S,
    STALE_READS_MAX,
    Action,
    Appender,
    Conflicted,
    Event,
    Fail,
    FoundFull,
    Left,
    LinkFound,
    LinkLost,
    OwnerRead,
    Pause,
    PauseOver,
    Phase,
    ReadOwner,
    ReadTail,
    RecordGiven,
    Resolve,
    SeizeAsked,
    Send,
    State,
    Stored,
    TailRead,
    Turned,
    Unknown,
)
from brookmq.store.errors import BadRecord, Deposed, NotOwner, RecordsLost, StoreError, StreamNotFound
from brookmq.store.record import (
    DATA,
    HEADER_BYTES,
    OWNERSHIP,
    Header,
    decode_header,
    decode_ownership,
    encode_ownership,
    encode_record,
)


class Store:
    """A stream that refuses what does not follow its last record, as the real one does."""

    def __init__(self) -> None:
        self.records: list[bytes] = []

    def owner(self, round_number: int, behind: int = 0) -> OwnerRead:
        for sequence in range(len(self.records) - behind, 0, -1):
            record = self.records[sequence - 1]
            if decode_header(record, sequence).kind == OWNERSHIP:
                return OwnerRead(round_number, sequence, decode_ownership(record)[0])
        return OwnerRead(round_number, 0, b"")

    def append(self, send: Send) -> Stored | Conflicted:
        last = len(self.records) if send.number else self.owner(0).sequence
        if send.expected != last:
            return Conflicted(send.round, f"wrong last sequence: {last}")
        self.records.append(send.record)
        return Stored(send.round, send.term, send.number, len(self.records))

    def tail(self, round_number: int, behind: int = 0) -> TailRead:
        sequence = max(len(self.records) - behind, 0)
        header = decode_header(self.records[sequence - 1], sequence) if sequence else None
        return TailRead(round_number, sequence, header)

    def usurp(self) -> None:
        """Another one seizes."""
        self.records.append(encode_record(OWNERSHIP, 0, 0, encode_ownership(b"o" * 16, b"other")))


@dataclass
class Owner:
    """An appender with its way to the store, on which things get lost, late and doubled."""

    name: int
    appender: Appender = field(default_factory=lambda: Appender("s", "s.owner"))
    to_store: deque[Send | ReadTail | ReadOwner] = field(default_factory=deque)
    to_owner: list[Event] = field(default_factory=list)
    given: int = 0
    acknowledged: dict[bytes, int] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    deposed: int = 0

    def take(self, event: Event) -> None:
        for action in self.appender.handle(event):
            match action:
                case Send() | ReadTail() | ReadOwner():
                    self.to_store.append(action)
                case Pause(round_number, _):
                    self.to_owner.append(PauseOver(round_number))
                case Resolve(ticket, sequence):
                    assert isinstance(ticket, bytes)
                    assert ticket not in self.acknowledged, "acknowledged twice"
                    self.acknowledged[ticket] = sequence
                    self.order.append(sequence)
                case Fail(_, error):
                    self.deposed += isinstance(error, Deposed)
        self.appender.check_invariants()


class World:
    """Two owners, one store, one source of chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.store = Store()
        self.owners = [Owner(0), Owner(1)]
        self.late: list[tuple[Owner, Send]] = []  # copies that are still somewhere in the network
        self.calm = False

    def luck(self, probability: float) -> bool:
        return not self.calm and self.chance.random() < probability

    def step(self) -> None:
        owner = self.chance.choice(self.owners)
        if self.luck(0.02):
            owner.take(LinkLost("cut"))
        if owner.appender.phase is Phase.OFFLINE:
            if self.calm or self.chance.random() < 0.3:
                owner.take(LinkFound())
            return
        if self.late and self.chance.random() < 0.1:
            late_owner, send = self.late.pop(self.chance.randrange(len(self.late)))
            answer = self.store.append(send)
            if self.chance.random() < 0.5:
                late_owner.to_owner.append(answer)
        choices = [self.give]
        choices += [self.deliver] * (3 if owner.to_store else 0)
        choices += [self.answer] * (3 if owner.to_owner else 0)
        self.chance.choice(choices)(owner)

    def give(self, owner: Owner) -> None:
        if owner.appender.state is State.IDLE:
            if self.luck(0.05) or owner.appender.term == 0 or (self.calm and owner.name == 0):
                token = self.chance.randbytes(16)
                owner.take(SeizeAsked(token, b"", token))
        elif owner.appender.state is State.OWNING and not self.calm:
            owner.given += 1
            body = f"{owner.name}:{owner.given}".encode()
            owner.take(RecordGiven(body, body))

    def deliver(self, owner: Owner) -> None:
        order = owner.to_store.popleft()
        if not isinstance(order, Send):
            if self.luck(0.1):
                owner.to_owner.append(Unknown(order.round, "no answer"))
            else:
                behind = self.chance.randrange(4) if self.luck(0.2) else 0
                read = self.store.tail if isinstance(order, ReadTail) else self.store.owner
                owner.to_owner.append(read(order.round, behind))
            return
        if self.luck(0.05):
            owner.to_owner.append(FoundFull(order.round, "full"))
            return
        if self.luck(0.1):  # late: the owner hears of a time limit, the store gets it at some time, or never
            self.late.append((owner, order))
            owner.to_owner.append(Unknown(order.round, "no answer"))
            return
        answer = self.store.append(order)
        if self.luck(0.1):
            owner.to_owner.append(Unknown(order.round, "no answer"))
        else:
            owner.to_owner.append(answer)
        if self.luck(0.05):  # a copy, and an error for what is stored
            owner.to_owner.append(self.store.append(order))

    def answer(self, owner: Owner) -> None:
        in_order = 0 if self.chance.random() < 0.7 else self.chance.randrange(len(owner.to_owner))
        owner.take(owner.to_owner.pop(in_order))

    def settle(self) -> None:
        """No more trouble: everything that waits gets its answer."""
        self.calm = True
        for _ in range(20_000):
            if all(owner.appender.phase is not Phase.OFFLINE for owner in self.owners) and not any(
                owner.to_store or owner.to_owner or owner.appender.waiting_bytes for owner in self.owners
            ):
                return
            self.step()
        raise AssertionError("it does not come to rest")

    def check(self) -> None:
        stored: list[bytes] = []  # of data; an overtaken seizer may have two ownership records
        newest = 0
        for sequence, record in enumerate(self.store.records, 1):
            header = decode_header(record, sequence)
            assert header.term >= newest, "a record of an older term after a newer ownership record"
            newest = header.term
            if header.kind == DATA:
                stored.append(record[HEADER_BYTES:])
        assert len(stored) == len(set(stored)), "stored twice"
        for owner in self.owners:
            for body, sequence in owner.acknowledged.items():
                assert self.store.records[sequence - 1][HEADER_BYTES:] == body, "acknowledged and not there"
            assert owner.order == sorted(owner.order)
            mine = [int(number) for name, number in (body.split(b":") for body in stored) if int(name) == owner.name]
            assert mine == sorted(mine), "out of order"


def simulate(seed: int, steps: int = 1500) -> World:
    print(f"seed {seed}")  # shown by pytest when the test fails
    world = World(seed)
    for _ in range(steps):
        world.step()
    world.settle()
    world.check()
    return world


@pytest.mark.parametrize("block", range(8))
def test_every_acknowledged_record_is_there_once_and_in_order(block: int) -> None:
    worlds = [simulate(seed) for seed in range(block * 50, block * 50 + 50)]
    assert sum(len(owner.acknowledged) for world in worlds for owner in world.owners) > 1000
    assert sum(owner.deposed for world in worlds for owner in world.owners) > 10


@pytest.mark.long
def test_the_same_for_many_seeds() -> None:
    for seed in range(1000, 11_000):
        simulate(seed)


def owning(in_flight_max: int = 1) -> tuple[Appender, Store]:
    appender, store = Appender("s", "s.owner", in_flight_max=in_flight_max), Store()
    appender.handle(LinkFound())
    (read,) = appender.handle(SeizeAsked(b"t" * 16, b"me", "seize"))
    assert isinstance(read, ReadOwner)
    (send,) = appender.handle(store.owner(read.round))
    assert isinstance(send, Send)
    assert appender.handle(store.append(send)) == [Resolve("seize", 1)]
    assert appender.state is State.OWNING
    return appender, store


def sends(actions: list[Action]) -> list[Send]:
    return [action for action in actions if isinstance(action, Send)]


def test_the_next_record_is_sent_when_the_one_before_it_is_stored() -> None:
    appender, store = owning()
    given = [send for n in range(3) for send in sends(appender.handle(RecordGiven(b"%d" % n, n)))]
    assert [(send.number, send.expected) for send in given] == [(1, 1)]
    answer, following = appender.handle(store.append(given[0]))
    assert answer == Resolve(0, 2)
    assert isinstance(following, Send)
    assert (following.number, following.expected) == (2, 2)


def test_two_under_way_would_be_unsafe() -> None:
    """Why IN_FLIGHT_MAX is 1: the store sees to places, so the second of two is accepted behind another's record."""
    appender, store = owning(in_flight_max=2)
    first, second = [send for n in (1, 2) for send in sends(appender.handle(RecordGiven(b"x", n)))]
    store.usurp()
    assert isinstance(store.append(first), Conflicted)
    accepted = store.append(second)
    assert isinstance(accepted, Stored)
    assert Resolve(1, 2) in appender.handle(accepted), "the first is acknowledged, and it is nowhere"


def test_an_error_for_what_is_stored_is_no_loss_and_no_second_copy() -> None:
    appender, store = owning()
    (send,) = sends(appender.handle(RecordGiven(b"x", "x")))
    store.append(send)
    (read,) = appender.handle(Conflicted(send.round, "wrong last sequence"))
    assert isinstance(read, ReadTail)
    assert appender.handle(store.tail(read.round)) == [Resolve("x", 2)]
    assert len(store.records) == 2


def test_what_is_not_there_is_sent_again() -> None:
    appender, store = owning()
    (send,) = [send for n in (1, 2) for send in sends(appender.handle(RecordGiven(b"x", n)))]
    appender.handle(LinkLost("cut"))
    (read,) = appender.handle(LinkFound())
    assert isinstance(read, ReadTail)
    (again,) = sends(appender.handle(store.tail(read.round)))
    assert (again.number, again.record) == (1, send.record)
    assert appender.handle(Unknown(send.round, "an answer of the round before")) == []


def test_a_newer_ownership_record_deposes_every_waiter() -> None:
    appender, store = owning()
    for n in range(3):
        appender.handle(RecordGiven(b"x", n))
    store.usurp()
    (read,) = appender.handle(Conflicted(appender.round, "wrong last sequence"))
    assert isinstance(read, ReadTail)
    answers = appender.handle(store.tail(read.round))
    assert [type(answer.error) for answer in answers if isinstance(answer, Fail)] == [Deposed] * 3
    assert appender.state is State.IDLE
    (refused,) = appender.handle(RecordGiven(b"x", "late"))
    assert isinstance(refused, Fail)
    assert isinstance(refused.error, NotOwner)


def test_a_stale_read_is_repeated_and_lost_records_are_named() -> None:
    appender, store = owning()
    for n in range(2):
        (send,) = sends(appender.handle(RecordGiven(b"x", n)))
        appender.handle(store.append(send))
    appender.handle(RecordGiven(b"x", "waits"))
    actions = appender.handle(Unknown(appender.round, "no answer"))
    for _ in range(STALE_READS_MAX):
        while not isinstance(actions[0], ReadTail):
            assert isinstance(actions[0], Pause)
            actions = appender.handle(PauseOver(actions[0].round))
        actions = appender.handle(store.tail(actions[0].round, behind=1))
        assert not sends(actions), "an append after a sequence that is known to be taken"
    assert isinstance(actions[0], Pause)
    (read,) = appender.handle(PauseOver(actions[0].round))
    assert isinstance(read, ReadTail)
    (failed,) = appender.handle(store.tail(read.round, behind=1))
    assert isinstance(failed, Fail)
    assert isinstance(failed.error, RecordsLost)


def test_a_full_store_is_waited_for_and_said() -> None:
    appender, store = owning()
    (send,) = sends(appender.handle(RecordGiven(b"x", "x")))
    (pause,) = appender.handle(FoundFull(send.round, "no room"))
    assert pause == Pause(appender.round, FULL_PAUSE_S)
    (read,) = appender.handle(PauseOver(appender.round))
    assert isinstance(read, ReadTail)
    (again,) = sends(appender.handle(store.tail(read.round)))
    assert appender.trouble == "no room", "it stays until something is stored"
    assert appender.handle(store.append(again)) == [Resolve("x", 2)]
    assert appender.trouble == ""


def test_a_purged_tail_is_no_loss_but_an_unread_one_deposes() -> None:
    for beyond, outcome in ((0, Send), (1, Fail)):
        appender, _ = owning()
        (send,) = sends(appender.handle(RecordGiven(b"x", "x")))
        (read,) = appender.handle(Unknown(send.round, "no answer"))
        assert isinstance(read, ReadTail)
        (action,) = appender.handle(TailRead(read.round, 1 + beyond, None))
        assert isinstance(action, outcome)


def seizing() -> tuple[Appender, Store, Send]:
    appender, store = Appender("s", "s.owner"), Store()
    appender.handle(LinkFound())
    (read,) = appender.handle(SeizeAsked(b"a" * 16, b"", "seize"))
    assert isinstance(read, ReadOwner)
    (send,) = sends(appender.handle(store.owner(read.round)))
    return appender, store, send


def test_a_seizer_that_was_overtaken_tries_again() -> None:
    appender, store, send = seizing()
    store.usurp()
    answer = store.append(send)
    assert isinstance(answer, Conflicted)
    (read,) = appender.handle(answer)
    assert isinstance(read, ReadOwner)
    (send,) = sends(appender.handle(store.owner(read.round)))
    assert (send.term, send.expected) == (1, 1)
    assert appender.handle(store.append(send)) == [Resolve("seize", 2)]


def test_a_seizer_without_an_answer_knows_its_record_by_the_token() -> None:
    appender, store, send = seizing()
    store.append(send)
    (read,) = appender.handle(Unknown(send.round, "no answer"))
    assert isinstance(read, ReadOwner)
    assert appender.handle(store.owner(read.round)) == [Resolve("seize", 1)]
    assert appender.state is State.OWNING


def test_a_busy_owner_cannot_keep_a_seizer_out() -> None:
    owner, store = owning()
    (record,) = sends(owner.handle(RecordGiven(b"x", "x")))
    appender = Appender("s", "s.owner")
    appender.handle(LinkFound())
    (read,) = appender.handle(SeizeAsked(b"a" * 16, b"", "seize"))
    assert isinstance(read, ReadOwner)
    (send,) = sends(appender.handle(store.owner(read.round)))
    owner.handle(store.append(record))  # between the seizer's read and its append
    assert appender.handle(store.append(send)) == [Resolve("seize", 3)]
    (late,) = sends(owner.handle(RecordGiven(b"y", "y")))
    assert isinstance(store.append(late), Conflicted)


@pytest.mark.parametrize("error", [StreamNotFound("gone"), BadRecord("newer format")])
def test_a_refusal_for_good_ends_the_ownership(error: StoreError) -> None:
    appender, _ = owning()
    (send,) = sends(appender.handle(RecordGiven(b"x", "x")))
    assert appender.handle(Turned(send.round, error)) == [Fail("x", error)]
    assert appender.state is State.IDLE


def test_who_leaves_answers_everybody() -> None:
    appender, _ = owning()
    for n in range(3):
        appender.handle(RecordGiven(b"x", n))
    assert len(appender.handle(Left(NotOwner("left")))) == 3
    appender.check_invariants()


def test_what_cannot_be_is_not_passed_over() -> None:
    appender, _ = owning()
    with pytest.raises(CallerError):
        appender.handle(SeizeAsked(b"t" * 16, b"", "again"))
    with pytest.raises(InvariantError):
        appender.handle(Stored(0, 1, 1, 7))
    with pytest.raises(InvariantError):
        appender.handle(Stored(0, 1, 1, 2))  # never given
    (send,) = sends(appender.handle(RecordGiven(b"x", "x")))
    (read,) = appender.handle(Unknown(send.round, "no answer"))
    assert isinstance(read, ReadTail)
    with pytest.raises(InvariantError):
        appender.handle(TailRead(read.round, 1, Header(DATA, 0, 1)))  # an older term behind our ownership record
