"""The decisions of a log's one appender, without socket, clock or chance.

Rules that make an append happen exactly once:
1. Every record is sent with the sequence that must be the last one before it. The store refuses it in any other place,
   so a copy that arrives late, twice or after another owner's record changes nothing. An ownership record is sent with
   the sequence of the ownership record that it replaces instead: it has to win against others who seize, not against
   every append of a busy owner, whose next append is then refused.
2. One record is under way at a time. The expected sequence names a place and not the record in it: with two under way,
   another's ownership record could take the first one's place and the store would then accept the second behind it.
   So a record is sent only after the one before it is known to be stored, and what waits becomes larger batches.
3. Without an acknowledgement nothing is assumed. The appender stops sending and reads the last record from the stream's
   leader: its own term tells how far it got, a newer term that it is deposed, and what is missing is sent again.
4. A read may be stale (a leader that does not know yet that it is none): one that shows less than what was acknowledged
   is repeated, and one that shows too little costs a conflict and another read.

A *round* is one stretch of sending between two such reads; answers of earlier rounds are ignored unless they prove that
something is stored.

Events are past facts and actions are orders; ``handle`` is the only entry.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

from brookmq.base.errors import CallerError, InvariantError
from brookmq.store.errors import Deposed, NotOwner, RecordsLost, StoreError
from brookmq.store.record import DATA, OWNERSHIP, Header, encode_ownership, encode_record

IN_FLIGHT_MAX: Final = 1  # rule 2; a test shows what two would lose
PAUSE_FIRST_S: Final = 0.02
PAUSE_MAX_S: Final = 0.5
FULL_PAUSE_S: Final = 0.5
# With the pauses above about 20 s, longer than an election: a store that still shows less has lost records.
STALE_READS_MAX: Final = 40


class SeizeAsked(NamedTuple):
    """Somebody wants to own the log."""

    token: bytes
    label: bytes
    ticket: object


class RecordGiven(NamedTuple):
    """A record to append; ``ticket`` comes back in ``Resolve`` or ``Fail``."""

    body: bytes
    ticket: object
    kind: int = DATA
    subject: str = ""


class Stored(NamedTuple):
    """The store acknowledged."""

    round: int
    term: int
    number: int
    sequence: int


class Conflicted(NamedTuple):
    """The store says that another record came first; it may be our own, sent earlier."""

    round: int
    reason: str


class Unknown(NamedTuple):
    """No answer, or one that proves nothing, to an append or to a read."""

    round: int
    reason: str


class FoundFull(NamedTuple):
    """The store has no room."""

    round: int
    reason: str


class Turned(NamedTuple):
    """The store refused for good."""

    round: int
    error: StoreError


class TailRead(NamedTuple):
    """The stream's last sequence, and its record's header unless that record is gone."""

    round: int
    sequence: int
    header: Header | None


class OwnerRead(NamedTuple):
    """The sequence and token of the last ownership record; 0 when there is none."""

    round: int
    sequence: int
    token: bytes


class PauseOver(NamedTuple):
    """The time that ``Pause`` asked for has passed."""

    round: int


class LinkLost(NamedTuple):
    """No connection to the store."""

    reason: str


class LinkFound(NamedTuple):
    """There is a connection to the store (again)."""


class Left(NamedTuple):
    """The owner goes, on its own will."""

    error: StoreError


Event = (
    SeizeAsked
    | RecordGiven
    | Stored
    | Conflicted
    | Unknown
    | FoundFull
    | Turned
    | TailRead
    | OwnerRead
    | PauseOver
    | LinkLost
    | LinkFound
    | Left
)


class Send(NamedTuple):
    """Append this record right after sequence ``expected``; number 0: if that is the last ownership record."""

    round: int
    term: int
    number: int
    expected: int
    subject: str
    record: bytes


class ReadTail(NamedTuple):
    """Read the last sequence and record from the leader."""

    round: int


class ReadOwner(NamedTuple):
    """Read the last ownership record from the leader."""

    round: int


class Pause(NamedTuple):
    """Come back with ``PauseOver`` after a while."""

    round: int
    seconds: float


class Resolve(NamedTuple):
    """Tell the giver of a record where it is stored; for the seizer that is its term."""

    ticket: object
    sequence: int


class Fail(NamedTuple):
    """Tell the giver of a record that it can't be said to be stored."""

    ticket: object
    error: StoreError


Action = Send | ReadTail | ReadOwner | Pause | Resolve | Fail


class State(Enum):
    """What the appender is to the log."""

    IDLE = auto()
    SEIZING = auto()
    OWNING = auto()


class Phase(Enum):
    """What the appender does right now."""

    OFFLINE = auto()
    SENDING = auto()
    READING = auto()
    PAUSING = auto()


@dataclass(slots=True)
class Entry:
    """A record that is not known to be stored."""

    number: int
    kind: int
    body: bytes
    subject: str
    ticket: object


class Appender:
    """One appender of one log."""

    def __init__(self, subject: str, ownership_subject: str, *, in_flight_max: int = IN_FLIGHT_MAX) -> None:
        self.state = State.IDLE
        self.phase = Phase.OFFLINE
        self.term = 0  # of this ownership, or of the last one; while seizing the term that is to end
        self.stored = -1  # highest number of this term known to be stored; -1 while seizing
        self.round = 0  # grows with each interruption; answers of older rounds are void
        self.waiting_bytes = 0  # sum of the bodies in ``_entries``
        self.trouble = ""  # why nothing moves, for people; empty when all is well
        self._entries: deque[Entry] = deque()  # unresolved, numbers dense from ``stored + 1``
        self._sent = 0  # how many of them, from the left, were sent in this round
        self._subject = subject
        self._ownership_subject = ownership_subject
        self._in_flight_max = in_flight_max
        self._token = b""
        self._failures = 0  # interruptions since the last acknowledgement
        self._stale_reads = 0  # reads in a row that showed less than what was acknowledged

    def handle(self, event: Event) -> list[Action]:
        """Takes what happened, returns what to do, in order."""
        actions: list[Action] = []
        match event:
            case Stored():
                self._stored(event, actions)
            case RecordGiven():
                self._given(event, actions)
            case SeizeAsked():
                self._seize(event, actions)
            case LinkLost(reason):
                self._interrupt(Phase.OFFLINE, reason)
            case LinkFound():
                if self.phase is Phase.OFFLINE:
                    self._look(actions)
            case Left(error):
                self._step_down(error, actions)
            case _:
                if event.round == self.round and self.state is not State.IDLE:
                    self._answered(event, actions)
        return actions

    def _answered(
        self, event: Conflicted | Unknown | FoundFull | Turned | TailRead | OwnerRead | PauseOver, actions: list[Action]
    ) -> None:
        match event:
            case Conflicted(_, reason) | Unknown(_, reason):
                self._retry(reason, actions)
            case FoundFull(_, reason):
                self._interrupt(Phase.PAUSING, reason)
                actions.append(Pause(self.round, FULL_PAUSE_S))
            case Turned(_, error):
                self._step_down(error, actions)
            case PauseOver():
                self._look(actions)
            case TailRead():
                self._judge(event, actions)
            case OwnerRead(_, sequence, token):
                if token == self._token:
                    self._own(sequence, actions)
                else:
                    self.term = sequence
                self._resume(actions)

    # What is asked

    def _seize(self, event: SeizeAsked, actions: list[Action]) -> None:
        if self.state is not State.IDLE:
            raise CallerError("the log is owned or being seized already")
        self.state = State.SEIZING
        self.term, self.stored, self._token = 0, -1, event.token
        self._failures = self._stale_reads = 0
        self._entries.append(
            Entry(0, OWNERSHIP, encode_ownership(event.token, event.label), self._ownership_subject, event.ticket)
        )
        self.waiting_bytes = len(self._entries[0].body)
        if self.phase is not Phase.OFFLINE:
            self._look(actions)

    def _given(self, event: RecordGiven, actions: list[Action]) -> None:
        if self.state is not State.OWNING:
            actions.append(Fail(event.ticket, NotOwner("the log is not owned here")))
            return
        number = self.stored + len(self._entries) + 1
        self._entries.append(Entry(number, event.kind, event.body, event.subject or self._subject, event.ticket))
        self.waiting_bytes += len(event.body)
        self._pump(actions)

    # What the store said

    def _stored(self, event: Stored, actions: list[Action]) -> None:
        if self.state is State.SEIZING and event.number == 0 and event.round == self.round:
            self._own(event.sequence, actions)
        elif self.state is State.OWNING and event.number > 0 and event.term == self.term:
            if event.sequence != event.term + event.number:
                raise InvariantError(f"number {event.number} of term {event.term} is stored at {event.sequence}")
            self._resolve(event.number, actions)
        self._pump(actions)  # anything else is of an ownership that is over; its waiters have their answer

    def _own(self, term: int, actions: list[Action]) -> None:
        self.term = term
        self.state = State.OWNING
        self._resolve(0, actions)

    def _judge(self, tail: TailRead, actions: list[Action]) -> None:
        header = tail.header
        if tail.sequence < self.term + self.stored:
            self._stale_reads += 1
            if self._stale_reads > STALE_READS_MAX:
                lost = f"sequences {tail.sequence + 1} to {self.term + self.stored} were acknowledged and are gone"
                self._step_down(RecordsLost(lost), actions)
            else:
                self._retry(f"the store shows {tail.sequence}, less than it acknowledged", actions)
        elif header is None and tail.sequence > self.term + self.stored:
            # Somebody appended, and retention or a purge took it before it was read: it can't be told whose it was.
            self._step_down(Deposed(f"the record at {tail.sequence} is gone before it was read"), actions)
        elif header is not None and header.term > self.term:
            self._step_down(Deposed(f"the log is owned since {header.term}, this was term {self.term}"), actions)
        elif header is not None and header.term < self.term:
            raise InvariantError(f"{header} was appended after the ownership record of term {self.term}")
        else:
            if header is not None:
                self._resolve(header.number, actions)
            self._resume(actions)

    # What follows

    def _resolve(self, number: int, actions: list[Action]) -> None:
        """Everything up to ``number`` is stored."""
        if number <= self.stored:
            return
        if number > self.stored + len(self._entries):  # before anything is taken out, so that no waiter is forgotten
            raise InvariantError(f"number {number} of term {self.term} is stored and was never given")
        while self._entries and self._entries[0].number <= number:
            entry = self._entries.popleft()
            self.waiting_bytes -= len(entry.body)
            self._sent = max(self._sent - 1, 0)
            actions.append(Resolve(entry.ticket, self.term + entry.number))
            self.stored = entry.number
        self._moved()

    def _moved(self) -> None:
        self._failures = self._stale_reads = 0
        if self.phase is not Phase.OFFLINE:
            self.trouble = ""

    def _resume(self, actions: list[Action]) -> None:
        self.phase = Phase.SENDING
        self._pump(actions)

    def _pump(self, actions: list[Action]) -> None:
        if self.phase is not Phase.SENDING:
            return
        while self._sent < min(len(self._entries), self._in_flight_max):
            entry = self._entries[self._sent]
            self._sent += 1
            record = encode_record(entry.kind, self.term, entry.number, entry.body)
            expected = self.term + max(entry.number - 1, 0)
            actions.append(Send(self.round, self.term, entry.number, expected, entry.subject, record))

    def _interrupt(self, phase: Phase, reason: str) -> None:
        self.round += 1
        self.phase = phase
        self.trouble = reason
        self._sent = 0

    def _look(self, actions: list[Action]) -> None:
        """Reads the tail, unless nothing depends on it."""
        if self._entries:
            self.round += 1
            self._sent = 0
            self.phase = Phase.READING
            actions.append(ReadOwner(self.round) if self.state is State.SEIZING else ReadTail(self.round))
        else:
            self._resume(actions)
            self._moved()

    def _retry(self, reason: str, actions: list[Action]) -> None:
        self._interrupt(Phase.PAUSING, reason)
        self._failures += 1
        if self._failures == 1:
            self._look(actions)
        else:
            actions.append(Pause(self.round, min(PAUSE_FIRST_S * 2 ** min(self._failures - 2, 10), PAUSE_MAX_S)))

    def _step_down(self, error: StoreError, actions: list[Action]) -> None:
        actions.extend(Fail(entry.ticket, error) for entry in self._entries)
        self._entries.clear()
        self.waiting_bytes = 0
        self.round += 1
        self._sent = 0
        self.state = State.IDLE
        self.trouble = str(error)
        if self.phase is not Phase.OFFLINE:
            self.phase = Phase.SENDING

    def check_invariants(self) -> None:
        """Raises when what must hold between two events does not."""
        numbers = [entry.number for entry in self._entries]
        rules = {
            "numbers are dense from the first that is not stored": numbers
            == list(range(self.stored + 1, self.stored + 1 + len(numbers))),
            "at most in_flight_max are under way": 0 <= self._sent <= min(len(numbers), self._in_flight_max),
            "only a round of sending has something under way": self.phase is Phase.SENDING or self._sent == 0,
            "bytes are counted": self.waiting_bytes == sum(len(entry.body) for entry in self._entries),
            "an idle appender keeps nothing": self.state is not State.IDLE or not numbers,
            "a seizer has its ownership record alone": self.state is not State.SEIZING or numbers == [0],
            "while sending nothing is held back": self.phase is not Phase.SENDING
            or self.state is State.IDLE
            or self._sent == min(len(numbers), self._in_flight_max),
        }
        broken = [rule for rule, holds in rules.items() if not holds]
        if broken:
            raise InvariantError("; ".join(broken))
