"""Hands messages to their audience: runs as slices, everything else one by one.

Nothing here waits. A publisher that has to be slowed down is found before (``full_receiver``), so that a run goes to
all of its receivers or has not begun.
"""

from __future__ import annotations

from brookmq.base.counters import Counters
from brookmq.base.message import Message
from brookmq.broker.outlet import PRESSED, Outlet, Turn
from brookmq.broker.publication import Delivery, Publication
from brookmq.broker.session import Session
from brookmq.broker.shared import SharedGroup
from brookmq.broker.subscription import Subscription
from brookmq.broker.topics import Audience

PICK_ONCE = frozenset({"sticky", "hash_client", "hash_topic"})  # strategies that give a whole run to one member


class Dispatcher:
    """``publication`` is the one run under way: it is handled to its end before the next is read."""

    def __init__(self, turn: Turn, counters: Counters) -> None:
        self.turn = turn
        self.counters = counters
        self.publication = Publication()

    def full_receiver(self, audience: Audience, publisher: Session | None) -> Outlet | None:
        """An outlet that a publisher to this audience has to wait for. Asked only while there is one at all."""
        for subscription in audience.at_once:
            session: Session = subscription.session
            if session is not publisher and self._has_to_be_waited_for(session):
                return session.outlet
        for group in audience.groups:
            for member in group.members:
                session = member.session
                if session is not publisher and self._has_to_be_waited_for(session):
                    return session.outlet
        return None

    def _has_to_be_waited_for(self, session: Session) -> bool:
        """Not a client that waits itself: it is not read from, so its acknowledgements, which would make room, don't
        come in. Two that publish to each other would wait for each other."""
        outlet = session.outlet
        return outlet is not None and outlet.state == PRESSED and not session.channel.suspended

    def send_run(self, audience: Audience, publisher: Session) -> None:
        """The run in ``publication`` to everyone who gets its topic."""
        publication = self.publication
        run = publication.run
        run_qos = run.qos
        largest = run.largest + 4  # another protocol version may add a few bytes
        for subscription in audience.at_once if run_qos else audience.targets:
            session = subscription.session
            if not session.plain or not subscription.plain or largest > session.packet_size_max:
                self._one_by_one(subscription, publisher)
                continue
            qos = subscription.qos
            if qos > run_qos:
                qos = run_qos
            if qos == 0:
                self._send_qos0(session)
            else:
                session.send_run(publication, qos, 0, run.count, None)
        if audience.groups:
            self._send_to_groups(audience.groups, audience.topic)
        if audience.stored_groups and run_qos == 0:
            self._send_to_groups(audience.stored_groups, audience.topic)

    def _send_qos0(self, session: Session) -> None:
        run = self.publication.run
        outlet = session.outlet
        if outlet is None:
            for index in range(run.count):
                session.send(self.publication.message(index), 0, False, b"", None, self.publication.now)
        elif outlet.overflows():
            self.counters.dropped_output_full += run.count
            session.dropped_count += run.count
        else:
            outlet.put(run.qos0(session.version5))
            self.counters.messages_sent += run.count
            session.sent_count += run.count

    def _one_by_one(self, subscription: Subscription, publisher: Session) -> None:
        """A receiver with wishes of its own: identifiers, No Local, topic aliases, a mount point, a small packet
        size."""
        if subscription.no_local and subscription.session is publisher:
            return  # [MQTT-3.8.3-3]
        publication = self.publication
        session = subscription.session
        qos = min(subscription.qos, publication.run.qos)
        for index in range(publication.run.count):
            session.send(publication.message(index), qos, False, subscription.properties, None, publication.now)

    def _send_to_groups(self, groups: list[SharedGroup], topic: bytes) -> None:
        publication = self.publication
        run = publication.run
        for group in groups:
            step = run.count if group.strategy in PICK_ONCE else 1
            for first in range(0, run.count, step):
                member = group.pick(publication.client_id, topic)
                if member is None:
                    break
                session = member.session
                qos = min(member.qos, run.qos)
                if qos and member.plain and session.plain and run.largest + 4 <= session.packet_size_max:
                    session.send_run(publication, qos, first, step, group)
                    continue
                for index in range(first, first + step):
                    message = publication.message(index)
                    session.send(message, qos, False, member.properties, group if qos else None, publication.now)

    def send(self, message: Message, audience: Audience, publisher: Session | None, now: float) -> int:
        """One message to everyone who gets its topic now, and not when it is stored. Returns how many sessions that
        were."""
        count = 0
        for subscription in audience.at_once if message.qos else audience.targets:
            if subscription.no_local and subscription.session is publisher:
                continue  # [MQTT-3.8.3-3]
            retain = message.retain and subscription.retain_as_published  # [MQTT-3.3.1-12, -13]
            qos = min(subscription.qos, message.qos)
            subscription.session.send(message, qos, retain, subscription.properties, None, now)
            count += 1
        for group in audience.groups:
            count += self.send_to_group(group, message, now)
        if not message.qos:
            for group in audience.stored_groups:
                count += self.send_to_group(group, message, now)
        return count

    def send_to_group(self, group: SharedGroup, message: Message, now: float) -> int:
        member = group.pick(message.client_id, message.topic)
        if member is None:
            return 0
        retain = message.retain and member.retain_as_published
        qos = min(member.qos, message.qos)
        member.session.send(message, qos, retain, member.properties, group if qos else None, now)
        return 1

    def hand_over(self, deliveries: list[Delivery], now: float) -> None:
        """A member of shared groups has left: what it did not acknowledge goes to others. [MQTT-4.8.2-5]"""
        for delivery in deliveries:
            if isinstance(delivery.group, SharedGroup):
                self.send_to_group(delivery.group, delivery.message, now)
