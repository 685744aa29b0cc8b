"""A client that does exactly what MQTT asks of one, at its own pace: it may leave anything unread or unsent.

What belongs to its session (unfinished messages in both directions) outlives its connections, and is given up only when
the node says that it has no session.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.broker.durability.ledger import Ledger, Message, PromiseError, Session
from tests.broker.durability.plans import Plan
from tests.broker.durability.simulated_node import Link, SimulatedNode
from tests.harness import wire
from tests.harness.received import Packet
from tests.harness.wire import Kind, Property, Will

PACKET_IDS = 24  # small, so that each is used again soon
OUTGOING_MAX = 16


@dataclass
class Outgoing:
    """A message that it has published and that is not finished."""

    message: Message
    packet_id: int
    released: bool = False  # PUBREC came
    release_sent: int = 0  # how often PUBREL went out
    connection: int = 0  # in which it was sent last


class SimulatedClient:
    def __init__(self, plan: Plan, ledger: Ledger, random: Random, trace: Callable[[str], None]) -> None:
        self.plan = plan
        self.name = plan.name
        self.ledger = ledger
        self.random = random
        self.trace: Callable[[str], None] = lambda text: trace(f"{plan.name}: {text}")
        self.session: Session | None = None
        self.link: Link | None = None
        self.connected = False
        self.connecting_at = 0.0
        self.connection = 0
        self.clean_next = True  # there is no session to go on with
        self.clean = True
        self.may_be_new = False  # its session may have expired: without CONNACK it can't know which one it has then
        self.will: Message | None = None
        self.will_delay = 0
        self.inbox: deque[Packet] = deque()
        self.outbox: deque[tuple[bytes, Callable[[], None] | None, str]] = deque()
        self.outgoing: dict[int, Outgoing] = {}  # by packet id, in the order of sending
        self.incoming: dict[int, bytes] = {}  # QoS 2 packet ids between PUBLISH and PUBREL → payload
        self.in_use: set[int] = set()  # packet ids of the node whose last acknowledgement is not out
        self.requests: dict[int, tuple[str, str]] = {}  # packet id → what was asked, filter
        self.on_accepted: Callable[[SimulatedClient, bool], None] = lambda client, present: None
        self.on_cut: Callable[[SimulatedClient], None] = lambda client: None

    # -- connections

    def connect(self, node: SimulatedNode, will: Message | None, delay: int) -> None:
        self.link = Link(node)
        self.connection += 1
        self.clean = self.clean_next or not self.plan.expiry
        self.will, self.will_delay = will, delay
        if self.clean:
            self.forget()
            self.clean_next = True
        props: list[tuple[int, wire.Value]] = []
        if self.plan.version == 5:
            if self.plan.expiry:
                props.append((Property.SESSION_EXPIRY, self.plan.expiry))
            if self.plan.receive_maximum:
                props.append((Property.RECEIVE_MAXIMUM, self.plan.receive_maximum))
        # MQTT 3 says with one flag that it wants to begin anew and that nothing is to be kept
        clean = self.clean if self.plan.version == 5 else not self.plan.expiry
        last = None
        if will is not None:
            delayed = [(Property.WILL_DELAY, delay)] if delay and self.plan.version == 5 else []
            last = Will(will.topic, b"%d" % will.number, will.qos, will.retain, delayed)
        data = wire.connect(self.name, version=self.plan.version, clean=clean, props=props, will=last)
        text = f"CONNECT clean={clean}" + (f" will #{will.number} in {delay} s" if will is not None else "")

        def sent() -> None:
            self.connecting_at = node.now
            if will is not None:
                self.ledger.sent(will)

        self._post(data, text, sent)

    def forget(self) -> None:
        """Its own side of the session is gone."""
        for each in self.outgoing.values():
            each.message.doubtful = True
        self.outgoing.clear()
        self.incoming.clear()
        if self.session is not None:
            self.session.end()
            self.session = None

    def cut(self) -> None:
        """The connection is gone, with everything that was not read or sent."""
        if self.may_be_new and not self.connected:
            self.clean_next = True
        self.link = None
        self.connected = False
        self.inbox.clear()
        self.outbox.clear()
        self.in_use.clear()
        for asked, name in self.requests.values():
            if self.session is not None:
                self.session.doubt(name)
                self.trace(f"does not know what became of {asked} {name}")
        self.requests.clear()
        if not self.plan.expiry:
            self.forget()

    # -- out

    def _post(self, data: bytes, text: str, sent: Callable[[], None] | None = None) -> None:
        self.outbox.append((data, sent, text))

    def _free_id(self) -> int:
        used = {*self.outgoing, *self.requests}
        return self.random.choice([number for number in range(1, PACKET_IDS + 1) if number not in used])

    def publish(self, messages: list[Message]) -> None:
        for message in messages:
            if message.qos == 0:
                self._post_publish(message, 0, False)
            elif len(self.outgoing) + len(self.requests) < OUTGOING_MAX:
                outgoing = Outgoing(message, self._free_id())
                self.outgoing[outgoing.packet_id] = outgoing
                self._send_again(outgoing, False)

    def _send_again(self, outgoing: Outgoing, dup: bool) -> None:
        if outgoing.released:
            self._post_release(outgoing)
        else:
            self._post_publish(outgoing.message, outgoing.packet_id, dup)
            outgoing.connection = self.connection

    def _post_publish(self, message: Message, packet_id: int, dup: bool) -> None:
        data = wire.publish(
            message.topic,
            b"%d %s" % (message.number, b"." * (message.number % 40)),
            version=self.plan.version,
            qos=message.qos,
            packet_id=packet_id or None,
            retain=message.retain,
            dup=dup and message.sends > 0,
        )
        text = f"PUBLISH {packet_id} QoS {message.qos} {message.topic} #{message.number}{' DUP' if dup else ''}"
        self._post(data, text, lambda: self.ledger.sent(message))

    def _post_release(self, outgoing: Outgoing) -> None:
        def sent() -> None:
            outgoing.release_sent += 1

        self._post(wire.acknowledge(Kind.PUBREL, outgoing.packet_id), f"PUBREL {outgoing.packet_id}", sent)

    def subscribe(self, name: str, qos: int) -> None:
        identifier = 1 + sum(name.encode()) % 200 if self.plan.identified and self.plan.version == 5 else 0
        no_local = self.plan.no_local and self.plan.version == 5 and not name.startswith("$share")
        packet_id = self._free_id()
        self.requests[packet_id] = "SUBSCRIBE", name
        options = wire.options(qos, no_local=no_local) if self.plan.version == 5 else qos
        props = [(Property.SUBSCRIPTION_ID, identifier)] if identifier else []
        data = wire.subscribe(packet_id, [(name, options)], version=self.plan.version, props=props)

        def sent() -> None:
            if self.session is not None:
                self.ledger.subscribing(self.session, name, qos, no_local, identifier)

        self._post(data, f"SUBSCRIBE {packet_id} {name} QoS {qos}", sent)

    def unsubscribe(self, name: str) -> None:
        packet_id = self._free_id()
        self.requests[packet_id] = "UNSUBSCRIBE", name

        def sent() -> None:
            if self.session is not None:
                self.session.doubt(name)

        data = wire.unsubscribe(packet_id, [name], version=self.plan.version)
        self._post(data, f"UNSUBSCRIBE {packet_id} {name}", sent)

    def disconnect(self, *, for_good: bool) -> None:
        """What was not sent is not sent any more."""
        ends = for_good and self.plan.expiry > 0 and self.plan.version == 5
        props = [(Property.SESSION_EXPIRY, 0)] if ends else None
        self.outbox.clear()
        self._post(wire.disconnect(0 if ends else None, props), f"DISCONNECT{' for good' if ends else ''}")
        self.flush(1)
        if ends:
            self.forget()
            self.clean_next = True

    def flush(self, count: int) -> bool:
        """So many packets go out, in one write or in two; whether there were any."""
        link = self.link
        if link is None or not self.outbox:
            return False
        data = b""
        for _ in range(min(count, len(self.outbox))):
            packet, sent, text = self.outbox.popleft()
            data += packet
            self.trace(f"→ {text}")
            if sent is not None:
                sent()
        cut = self.random.randrange(len(data)) if data and self.random.random() < 0.2 else 0
        for piece in (data[:cut], data[cut:]):
            if piece and not link.closed:
                link.send(piece)
        return True

    # -- in

    def unblock(self) -> None:
        """It reads from its socket again."""
        if self.link is not None and self.link.host.channel.outlet.blocked:
            self.link.host.channel.outlet.unblock()

    def read(self, count: int) -> bool:
        """So many packets; whether there were any."""
        if self.link is None:
            return False
        self.inbox.extend(self.link.read(self.plan.version))
        happened = bool(self.inbox)
        for _ in range(min(count, len(self.inbox))):
            self._take(self.inbox.popleft())
        if self.link is not None and self.link.closed and not self.inbox:
            self.trace("the node has closed the connection")
            self._doubt_unanswered()
            self.on_cut(self)
            happened = True
        return happened

    def _doubt_unanswered(self) -> None:
        """Closed without an answer: the node may have given up some and stored later ones."""
        for each in self.outgoing.values():
            each.message.doubtful = True

    def store_is_silent(self) -> None:
        """The node may refuse what is stored all the same; a client that does not hear that sends it again."""
        for each in self.outgoing.values():
            each.message.refused = True

    def _take(self, packet: Packet) -> None:
        self.trace(f"← {describe(packet)}")
        kind = packet.kind
        if kind is Kind.CONNACK:
            self._accepted(packet)
        elif kind is Kind.PUBLISH:
            self._take_publish(packet)
        elif kind is Kind.PUBREL:
            self.incoming.pop(packet.packet_id, None)
            self._answer(Kind.PUBCOMP, packet.packet_id)
        elif kind in (Kind.PUBACK, Kind.PUBREC, Kind.PUBCOMP):
            self._take_acknowledgement(packet)
        elif kind in (Kind.SUBACK, Kind.UNSUBACK):
            self._take_answer(packet)

    def _accepted(self, packet: Packet) -> None:
        if packet.reason:
            return
        self.connected = True
        self.on_accepted(self, packet.session_present)
        if packet.session_present and self.session is not None:
            self.session.resumed = True
            for each in [*self.outgoing.values()]:
                self._send_again(each, True)
        else:
            if packet.session_present and self.plan.version == 5:
                raise PromiseError(f"{self.name}: Session Present after a clean start")
            self.forget()
            self.session = self.ledger.new_session(self.name, bool(self.plan.expiry))
        self.clean_next = not self.plan.expiry

    def _take_publish(self, packet: Packet) -> None:
        session = self.session
        if session is None:
            raise PromiseError(f"{self.name}: {packet} before CONNACK")
        if packet.qos == 0:
            self.ledger.delivered(session, packet, True)
            return
        if packet.packet_id in self.in_use:
            raise PromiseError(f"{self.name}: packet id {packet.packet_id} is used twice at once: {packet}")
        self.in_use.add(packet.packet_id)
        if self.plan.receive_maximum and len(self.in_use) > self.plan.receive_maximum and self.plan.version == 5:
            raise PromiseError(f"{self.name}: more unfinished messages than its Receive Maximum: {packet}")
        if packet.qos == 1:
            if packet.packet_id in self.incoming:
                raise PromiseError(f"{self.name}: packet id {packet.packet_id} is that of a QoS 2 message: {packet}")
            self.ledger.delivered(session, packet, True)
            self._answer(Kind.PUBACK, packet.packet_id)
            return
        known = self.incoming.get(packet.packet_id)
        if known is not None and (known != packet.payload or not packet.dup):
            raise PromiseError(f"{self.name}: packet id {packet.packet_id} is still that of {known!r}: {packet}")
        self.incoming[packet.packet_id] = packet.payload
        self.ledger.delivered(session, packet, known is None)
        self._answer(Kind.PUBREC, packet.packet_id)

    def _answer(self, kind: Kind, packet_id: int) -> None:
        last = kind is not Kind.PUBREC
        done = (lambda: self.in_use.discard(packet_id)) if last else None
        self._post(wire.acknowledge(kind, packet_id), f"{kind.name} {packet_id}", done)

    def _take_acknowledgement(self, packet: Packet) -> None:
        outgoing = self.outgoing.get(packet.packet_id)
        wanted = {Kind.PUBACK: (1, False), Kind.PUBREC: (2, False), Kind.PUBCOMP: (2, True)}[packet.kind]
        if outgoing is None or (outgoing.message.qos, outgoing.released) != wanted:
            raise PromiseError(f"{self.name}: {packet} for {outgoing}")
        if packet.kind is Kind.PUBCOMP:
            if packet.reason == 0x92 and outgoing.release_sent < 2:
                raise PromiseError(f"{self.name}: PUBREC came, and now {outgoing} is not known")
            del self.outgoing[packet.packet_id]
            return
        earlier = next(
            each
            for each in self.outgoing.values()
            if each.message.qos == wanted[0] and not each.released and each.connection == self.connection
        )
        if earlier is not outgoing:
            raise PromiseError(f"{self.name}: {outgoing} is acknowledged before {earlier}")
        if packet.reason >= 0x80:
            outgoing.message.doubtful = True
            del self.outgoing[packet.packet_id]
            return
        self.ledger.acknowledged(outgoing.message)
        if packet.kind is Kind.PUBACK:
            del self.outgoing[packet.packet_id]
        else:
            outgoing.released = True
            self._post_release(outgoing)

    def _take_answer(self, packet: Packet) -> None:
        asked, name = self.requests.pop(packet.packet_id, ("", ""))
        session = self.session
        if session is None or asked != packet.kind.name.replace("ACK", "SCRIBE"):
            raise PromiseError(f"{self.name}: {packet} for {asked or 'nothing'}")
        if packet.kind is Kind.UNSUBACK:
            self.ledger.unsubscribed(session, name)
        elif packet.reasons[0] >= 0x80:
            session.doubt(name)
        else:
            self.ledger.subscribed(session, name)
            if name == self.plan.shares and not self.plan.may_end and self.ledger.group_certain_at is None:
                self.ledger.group_certain_at = self.ledger.step


def describe(packet: Packet) -> str:
    text = f"{packet.kind.name} {packet.packet_id or ''}"
    if packet.kind is Kind.PUBLISH:
        number = packet.payload.partition(b" ")[0].decode()
        flags = (" DUP" if packet.dup else "") + (" RETAIN" if packet.retain else "")
        return f"{text} QoS {packet.qos} {packet.topic.decode()} #{number}{flags}"
    if packet.kind is Kind.CONNACK:
        return f"CONNACK {packet.reason:#x} present={packet.session_present}"
    return text + (f" {packet.reason:#x}" if packet.reason else "") + (f" {packet.reasons}" if packet.reasons else "")
