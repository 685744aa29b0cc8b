"""A log with one appender: ``Appender`` decides, this runs its orders against the store.

Use: ``await log.seize()``, then ``log.append(record)`` as often as wanted. Each append gives a future of the record's
sequence, and they come true in order. The log keeps trying through restarts, elections and a full disk; how long to
wait is the caller's decision (a future that was cancelled is still appended, as nobody can call it back). Only three
things end it: another owner (``Deposed``), a refusal for good, and ``leave``. After them ``seize`` starts a new term.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Coroutine
from typing import Any, Final

from brookmq.base.ending import end
from brookmq.store.appender import (
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
from brookmq.store.errors import (
    NO_MESSAGE,
    Ambiguous,
    Conflict,
    NotOwner,
    QueueFull,
    RecordTooLarge,
    Refused,
    StoreError,
    StoreFull,
)
from brookmq.store.link import HEADERS_BYTES_MAX, REQUEST_TIME_LIMIT_S, Link, checked
from brookmq.store.record import DATA, HEADER_BYTES, TOKEN_BYTES, decode_header, decode_ownership
from brookmq.store.streams import look

QUEUE_BYTES_MAX: Final = 16 * 1024 * 1024  # a full second of a stream at its fastest would be 200 MB: press back sooner
RECORD_BYTES_MAX: Final = 8 * 1024 * 1024 - HEADERS_BYTES_MAX - HEADER_BYTES  # what the store is set up to take
EXPECTED: Final = "Nats-Expected-Last-Sequence"
EXPECTED_ON_SUBJECT: Final = "Nats-Expected-Last-Subject-Sequence"


class AppendLog:
    """The appending side of one stream."""

    def __init__(
        self,
        link: Link,
        stream: str,
        subject: str,
        *,
        queue_bytes_max: int = QUEUE_BYTES_MAX,
        record_bytes_max: int = RECORD_BYTES_MAX,
        time_limit_s: float = REQUEST_TIME_LIMIT_S,
    ) -> None:
        self.stream = stream
        self._link = link
        self._subject = subject
        self._queue_bytes_max = queue_bytes_max
        self._record_bytes_max = record_bytes_max
        self._time_limit_s = time_limit_s
        self._appender = Appender(subject, ownership_subject(subject))
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._unwatch = link.watch(self._link_turned)
        if link.up:
            self._run(self._appender.handle(LinkFound()))

    @property
    def owned(self) -> bool:
        """Whether appends are taken."""
        return self._appender.state is State.OWNING

    @property
    def term(self) -> int:
        """The term of this ownership, or of the last one."""
        return self._appender.term

    @property
    def trouble(self) -> str:
        """Why appends wait, for people; empty when they don't."""
        return self._appender.trouble

    @property
    def waiting_bytes(self) -> int:
        """What was taken and is not known to be stored."""
        return self._appender.waiting_bytes

    async def seize(self, label: bytes = b"") -> int:
        """Makes this the log's one appender, whoever was it before; returns the term."""
        future: asyncio.Future[int] = self._loop.create_future()
        self._take(SeizeAsked(secrets.token_bytes(TOKEN_BYTES), label, future))
        return await future

    def append(self, body: bytes, *, kind: int = DATA, subject: str = "") -> asyncio.Future[int]:
        """Takes a record; the future is its sequence, once it is stored.

        Raises ``NotOwner``, ``QueueFull`` (nothing was taken: press back and try again) or ``RecordTooLarge``. A
        record is taken by an empty queue whatever its size, so that no bound makes it impossible.
        """
        appender = self._appender
        if appender.state is not State.OWNING:
            raise NotOwner(f"{self.stream} is not owned here")
        if len(body) > self._record_bytes_max:
            raise RecordTooLarge(f"{self.stream}: a record of {len(body)} bytes, at most {self._record_bytes_max}")
        if appender.waiting_bytes and appender.waiting_bytes + len(body) > self._queue_bytes_max:
            raise QueueFull(f"{self.stream}: {appender.waiting_bytes} bytes wait for the store")
        future: asyncio.Future[int] = self._loop.create_future()
        self._take(RecordGiven(body, future, kind, subject))
        return future

    async def leave(self) -> None:
        """Steps down and stops; what has no answer yet fails with ``NotOwner`` and may be stored or not."""
        self._unwatch()
        self._take(Left(NotOwner(f"{self.stream}: this appender has left")))
        if self._pause is not None:
            self._pause.cancel()
        await end(self._tasks)

    # Running the appender's orders

    def _take(self, event: Event) -> None:
        self._run(self._appender.handle(event))

    def _link_turned(self, up: bool, reason: str) -> None:
        self._take(LinkFound() if up else LinkLost(reason))

    def _run(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Send():
                    self._spawn(self._send(action))
                case Resolve(ticket, sequence):
                    if not _future(ticket).done():
                        _future(ticket).set_result(sequence)
                case Fail(ticket, error):
                    if not _future(ticket).done():
                        _future(ticket).set_exception(error)
                case ReadTail(round_number):
                    self._spawn(self._read(self._tail(round_number), round_number))
                case ReadOwner(round_number):
                    self._spawn(self._read(self._owner(round_number), round_number))
                case Pause(round_number, seconds):
                    if self._pause is not None:
                        self._pause.cancel()
                    self._pause = self._loop.call_later(seconds, self._take, PauseOver(round_number))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A bug or a broken invariant must not leave anybody waiting: it ends the ownership, and is reported."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._take(Left(StoreError(f"{self.stream}: {error!r}")))
            self._loop.call_exception_handler({"message": f"appending to {self.stream}", "exception": error})

    async def _send(self, send: Send) -> None:
        event: Event
        headers = {EXPECTED if send.number else EXPECTED_ON_SUBJECT: str(send.expected)}
        try:
            answer = await self._link.request(send.subject, send.record, headers, time_limit_s=self._time_limit_s)
            event = Stored(send.round, send.term, send.number, int(checked(answer.data, self.stream)["seq"]))
        except Conflict as error:
            event = Conflicted(send.round, str(error))
        except StoreFull as error:
            event = FoundFull(send.round, str(error))
        except Ambiguous as error:
            event = Unknown(send.round, str(error))
        except RecordTooLarge as error:
            event = Turned(send.round, StoreError(str(error)))
        except StoreError as error:
            event = Turned(send.round, error)
        self._take(event)

    async def _read(self, reading: Coroutine[Any, Any, Event], round_number: int) -> None:
        event: Event
        try:
            event = await reading
        except (Ambiguous, StoreFull) as error:
            event = Unknown(round_number, str(error))
        except StoreError as error:
            event = Turned(round_number, error)
        self._take(event)

    async def _tail(self, round_number: int) -> TailRead:
        sequence = (await look(self._link, self.stream)).last_sequence
        found = await self._record({"seq": sequence}) if sequence else None
        return TailRead(round_number, sequence, decode_header(found[1], sequence) if found else None)

    async def _owner(self, round_number: int) -> OwnerRead:
        found = await self._record({"last_by_subj": ownership_subject(self._subject)})
        if found is None:
            return OwnerRead(round_number, 0, b"")
        sequence, record = found
        decode_header(record, sequence)  # a newer format is refused before anything is written behind it
        return OwnerRead(round_number, sequence, decode_ownership(record)[0])

    async def _record(self, query: dict[str, object]) -> tuple[int, bytes] | None:
        """A record from the stream's leader; any replica's answer would prove nothing."""
        try:
            answer = await self._link.api(f"STREAM.MSG.GET.{self.stream}", query, time_limit_s=self._time_limit_s)
        except Refused as refusal:
            if refusal.code != NO_MESSAGE:
                raise
            return None
        return int(answer["message"]["seq"]), base64.b64decode(answer["message"].get("data", ""))


def ownership_subject(subject: str) -> str:
    """Where the ownership records of a log are, so that who seizes competes with nobody else; in the same stream."""
    return f"{subject}.owner"


def _future(ticket: object) -> asyncio.Future[int]:
    """Tickets are opaque to the appender; here they are the futures that were given."""
    assert isinstance(ticket, asyncio.Future)
    return ticket
