"""What was promised to whom, and whether what arrives is that.

Time is the step of the simulation. What a client knows is *certain*: a subscription from its SUBACK to its UNSUBSCRIBE,
a message from its acknowledgement on. What it does not know (a request without an answer before a crash) is *possible*,
and then both outcomes are right. Every check is made against one of the two:

- what was acknowledged, and sent while a subscription was certain, has to arrive (``Session.due``);
- what arrives has to be possible: sent, not acknowledged before the SUBSCRIBE, not the session's own under No Local.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from brookmq.mqtt.topics import matches
from tests.harness.received import Packet
from tests.harness.wire import Property

GROUP_TOPICS = "g/"  # these arrive through a shared group only


class PromiseError(AssertionError):
    """The node has broken a promise."""


@dataclass
class Message:
    """One message of a client, or the will of one connection."""

    number: int
    topic: str
    qos: int
    retain: bool
    publisher: str
    sent_at: int = 0  # 0: not yet
    sends: int = 0
    acked_at: int | None = None
    doubtful: bool = False  # nobody knows whether it was taken: refused, or its publisher has lost its session
    refused: bool = False  # by a node whose store was silent, perhaps: then it may be there twice
    tells_publisher: bool = True  # False: a will
    certain_from: int = 0  # of a will: when its connection ended, which is later than it could be sent
    must_not_arrive: str = ""  # why

    @property
    def copies_max(self) -> int:
        """How many of it the node may hold for different messages: QoS 1 taken twice is two."""
        return max(1, self.sends) if self.qos == 1 or self.refused else 1

    def __str__(self) -> str:
        return f"message {self.number} ({self.topic}, QoS {self.qos}, of {self.publisher})"


@dataclass
class Subscription:
    filter: str
    qos: int
    no_local: bool
    identifier: int
    requested_at: int
    granted_at: int | None = None  # certain from here on
    changed_at: int = 0
    left_at: int | None = None

    def wants(self, message: Message) -> bool:
        return matches(self.filter.encode(), message.topic.encode())

    def possible(self, message: Message) -> bool:
        """It may have been there when the node took the message."""
        before = message.acked_at is not None and message.acked_at < self.requested_at
        after = self.left_at is not None and self.left_at < message.sent_at
        return not before and not after and self.wants(message)


@dataclass
class Session:
    """What one client id is promised, from a clean start to the next."""

    client: str
    kept: bool
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    past: list[Subscription] = field(default_factory=list)
    due: dict[int, set[str]] = field(default_factory=dict)  # number → filters, any of which is reason enough
    got: dict[int, list[Packet]] = field(default_factory=dict)
    got_at: dict[int, int] = field(default_factory=dict)  # after how many crashes, the first time
    newest: dict[tuple[str, str, int, int], int] = field(default_factory=dict)
    resumed: bool = False
    over: bool = False

    def end(self) -> None:
        """Nothing is promised any more."""
        self.over = True
        self.due.clear()

    def doubt(self, name: str) -> None:
        """The subscription may end now: what waits for it alone is not promised any more."""
        subscription = self.subscriptions.get(name)
        if subscription is not None:
            subscription.granted_at = None
        for number in [*self.due]:
            self.due[number].discard(name)
            if not self.due[number]:
                del self.due[number]


class Ledger:
    def __init__(self) -> None:
        self.step = 1
        self.crashes = 0
        self.messages: dict[int, Message] = {}
        self.sessions: list[Session] = []  # those that are not over
        self.group_members: set[str] = set()  # client ids
        self.group_certain_at: int | None = None  # since then a kept member is there for ever
        self.group_due: set[int] = set()
        self.group_got: dict[int, list[Packet]] = {}

    # -- what happens

    def new_message(self, topic: str, qos: int, retain: bool, publisher: str) -> Message:
        message = Message(len(self.messages) + 1, topic, qos, retain, publisher)
        self.messages[message.number] = message
        return message

    def new_session(self, client: str, kept: bool) -> Session:
        self.sessions = [session for session in self.sessions if not session.over]
        session = Session(client, kept)
        self.sessions.append(session)
        return session

    def sent(self, message: Message) -> None:
        message.sends += 1
        if not message.sent_at:
            message.sent_at = self.step

    def acknowledged(self, message: Message) -> None:
        """From here on it is promised to all who were subscribed when it was sent."""
        if message.acked_at is not None:
            return
        message.acked_at = self.step
        since = message.certain_from or message.sent_at
        if message.qos == 0:
            return
        if message.topic.startswith(GROUP_TOPICS):
            certain = self.group_certain_at is not None and self.group_certain_at < since
            if certain and message.number not in self.group_got:
                self.group_due.add(message.number)
            return
        for session in self.sessions:
            filters = {
                name
                for name, each in session.subscriptions.items()
                if each.granted_at is not None
                and each.granted_at < since
                and each.qos
                and each.wants(message)
                and not (each.no_local and message.publisher == session.client)
            }
            if filters and not session.over and message.number not in session.got:
                session.due[message.number] = filters

    def subscribing(self, session: Session, name: str, qos: int, no_local: bool, identifier: int) -> None:
        """SUBSCRIBE is on its way."""
        known = session.subscriptions.get(name)
        if known is None:
            session.subscriptions[name] = Subscription(name, qos, no_local, identifier, self.step)
        else:
            known.qos = qos
            known.changed_at = self.step

    def subscribed(self, session: Session, name: str) -> None:
        subscription = session.subscriptions[name]
        subscription.changed_at = self.step
        if subscription.granted_at is None:
            subscription.granted_at = self.step

    def unsubscribed(self, session: Session, name: str) -> None:
        subscription = session.subscriptions.pop(name, None)
        if subscription is not None:
            subscription.left_at = self.step
            session.past.append(subscription)

    # -- what arrives

    def delivered(self, session: Session, packet: Packet, fresh: bool) -> None:
        """``fresh``: not a QoS 2 message that the client has under the same packet id already."""
        message = self.messages.get(int(packet.payload.partition(b" ")[0]))
        if message is None or not message.sent_at or packet.topic.decode() != message.topic:
            raise PromiseError(f"{session.client} got {packet}, which nobody sent")
        if message.must_not_arrive:
            raise PromiseError(f"{session.client} got {message}: {message.must_not_arrive}")
        if packet.dup and not session.resumed:
            raise PromiseError(f"{session.client}: {message} has DUP in a session that was never resumed")
        if message.topic.startswith(GROUP_TOPICS):
            self._delivered_by_group(session, packet, message, fresh)
            return
        if packet.retain:
            if not message.retain:
                raise PromiseError(f"{session.client} got {message} as retained")
            return
        self._check_possible(session, packet, message)
        if fresh:
            self._check_repeat(session, packet, message, session.got.setdefault(message.number, []))
            self._check_order(session, packet, message)
            session.got[message.number].append(packet)
            session.got_at.setdefault(message.number, self.crashes)
            session.due.pop(message.number, None)

    def _check_possible(self, session: Session, packet: Packet, message: Message) -> None:
        now = [each for each in session.subscriptions.values() if each.wants(message)]
        possible = [each for each in [*now, *session.past] if each.possible(message)]
        if not possible:
            raise PromiseError(f"{session.client} got {message}, and was not subscribed when it was sent")
        own = message.publisher == session.client
        if own and all(each.no_local for each in possible):
            raise PromiseError(f"{session.client} got {message}, its own, in spite of No Local")
        if packet.qos > message.qos:
            raise PromiseError(f"{session.client} got {message} at QoS {packet.qos}")
        steady = all(
            each.granted_at is not None and each.granted_at <= each.changed_at < message.sent_at for each in now
        )
        if len(possible) == len(now) and steady and not (own and any(each.no_local for each in now)):
            qos = min(message.qos, max(each.qos for each in now))
            if packet.qos != qos:
                raise PromiseError(f"{session.client} got {message} at QoS {packet.qos}, not {qos}")
            identifiers = sorted(each.identifier for each in now if each.identifier)
            if sorted(packet.all(Property.SUBSCRIPTION_ID)) != identifiers:
                raise PromiseError(f"{session.client} got {message} without its identifiers {identifiers}: {packet}")

    def _check_repeat(self, session: Session, packet: Packet, message: Message, before: list[Packet]) -> None:
        if packet.qos == 0 and before:
            raise PromiseError(f"{session.client} got {message} at QoS 0 again")
        if packet.qos == 2 and sum(each.qos == 2 for each in before) >= message.copies_max:
            raise PromiseError(f"{session.client} got {message} a second time at QoS 2")
        copies = sum(not each.dup for each in before)
        crashes = self.crashes - session.got_at.get(message.number, self.crashes)
        if not packet.dup and copies >= message.copies_max and crashes < 2:  # the second may forget that it was sent
            raise PromiseError(f"{session.client} got {message} again without DUP")

    def _check_order(self, session: Session, packet: Packet, message: Message) -> None:
        if session.got.get(message.number):
            return
        if message.doubtful or message.refused or not message.tells_publisher:
            return  # a refusal that its publisher has not read lets later ones go first
        certain = [each.granted_at for each in session.subscriptions.values() if each.wants(message)]
        if message.sends > 1 and not any(at is not None and at < message.sent_at for at in certain):
            return  # the first copy was perhaps before it was subscribed
        key = (message.publisher, message.topic, message.qos, packet.qos)
        if session.newest.get(key, 0) > message.number:
            raise PromiseError(f"{session.client} got {message} after {session.newest[key]}")
        session.newest[key] = message.number

    def _delivered_by_group(self, session: Session, packet: Packet, message: Message, fresh: bool) -> None:
        if session.client not in self.group_members:
            raise PromiseError(f"{session.client} got {message}, and is in no group")
        before = self.group_got.setdefault(message.number, [])
        if fresh and packet.qos == 2 and sum(each.qos == 2 for each in before) >= message.copies_max:
            raise PromiseError(f"the group got {message} a second time at QoS 2, {session.client} was the last")
        if fresh:
            before.append(packet)
        self.group_due.discard(message.number)

    # -- the end

    def unfulfilled(self) -> list[str]:
        """What was promised and has not arrived."""
        missing = [
            f"{session.client} has not got {self.messages[number]}, sent at {self.messages[number].sent_at}, "
            f"acknowledged at {self.messages[number].acked_at}, due by {sorted(filters)}"
            for session in self.sessions
            for number, filters in session.due.items()
        ]
        return missing + [f"the group has not got {self.messages[number]}" for number in sorted(self.group_due)]
