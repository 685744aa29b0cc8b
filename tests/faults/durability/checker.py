"""The promises of a durable node, held against what its clients saw. Pure: a history in, violations out.

*Acknowledged* is a PUBACK or PUBREC with success; for a will, that its connection was accepted and then broke. A
session is *subscribed before* a message if its SUBACK had come before the message was first sent.

LOST        An acknowledged message did not reach a session that was subscribed before; of a shared group, no member.
REPEATED    At QoS 2 a session got a message twice: a PUBLISH whose packet id was not open from an earlier one. In a
            shared group, two members did. At QoS 1 a message may come again
            - once for each time that its publisher had to send it, since the node can't know it again then; and
            - as a redelivery: in a later connection of the session, and either the node died between the two, or DUP is
              set, the packet id is the same one and the first one's PUBACK may have been on its way when the
              connection broke. After an orderly DISCONNECT it was not.
            What was published at QoS 2 is new to a session once, also where it is delivered at QoS 1.
            A shared group at QoS 1 may give a message to another member when one has gone: it is not counted there.
REORDERED   The first deliveries of a topic's messages to a session are not in the order of their numbers. Redeliveries
            may go back, as the rules above allow; and so may what was sent before the session was subscribed and sent
            again behind it, of which the session sees the copy only. Not for shared groups, which hand over what an
            absent member had, and not for wills, which nobody sends in an order.
PACKET_ID   A packet id was used for another message while the subscriber still waited for its PUBREL, or a PUBLISH came
            again in the same connection, or without DUP.
SESSION     Session Present says otherwise than what the client knows.
EARLY       A message that was acknowledged before a session asked for its subscription reached it all the same.
FORBIDDEN   A will was sent though its client had taken leave.
QOS         A message came with another QoS than the lower one of publisher and subscription.
STRAY       A message came that nobody has sent, or with another content.
RETAINED    The retained message at the end is older than the last one that was acknowledged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tests.faults.durability.history import Connected, Event, Message, Released, Retained, Spoiled
from tests.faults.durability.story import (
    Connection,
    Duty,
    Published,
    Reception,
    Session,
    Story,
    Subscription,
    matches,
    read,
)


class Violation(NamedTuple):
    """A promise that was broken; ``client`` is the one that saw it, ``message`` what it is about."""

    rule: str
    client: str
    text: str
    message: Message | None = None


def check(events: Sequence[Event]) -> list[Violation]:
    """All violations in a history."""
    story = read(events)
    found = [Violation("STRAY", "", f"{message} was never sent", message) for message in story.strays]
    found += _contents(events)
    found += _sessions_present(story, events)
    found += _retained(story, events)
    for session in story.sessions:
        found += _qos_of(story, session)
        found += _early(story, session)
        found += _forbidden(story, session)
        found += _exactly_once(session)
        found += _at_least_once(story, session)
        if not session.group:
            found += _lost(story, [session])
            found += _order(story, session)
    for members in _groups(story).values():
        found += _lost(story, members)
        found += _once_in_group(members)
    return found


def owed(story: Story) -> int:
    """How many deliveries are still owed; what a run waits for at its end."""
    sets = [[session] for session in story.sessions if not session.group] + list(_groups(story).values())
    return sum(1 for sessions in sets for _ in _lost(story, sessions))


def summary(violations: Iterable[Violation]) -> str:
    """Counts by rule, and the first of each."""
    counts: Counter[str] = Counter()
    firsts: dict[str, Violation] = {}
    for violation in violations:
        counts[violation.rule] += 1
        firsts.setdefault(violation.rule, violation)
    return "\n".join(
        f"{rule} {counts[rule]} times, first: {first.client} {first.text}" for rule, first in firsts.items()
    )


def _groups(story: Story) -> dict[str, list[Session]]:
    groups: dict[str, list[Session]] = defaultdict(list)
    for session in story.sessions:
        if session.group:
            groups[session.group].append(session)
    return groups


# delivered at all


def _lost(story: Story, sessions: list[Session]) -> Iterator[Violation]:
    """One session, or all members of a group."""
    if not all(session.lasts for session in sessions):
        return
    got = {reception.message for session in sessions for reception in session.receptions}
    wanted = [each for session in sessions for each in session.subscriptions if each.granted_at is not None]
    for published in story.published.values():
        if published.duty is Duty.REQUIRED and published.message not in got and _wants(wanted, published):
            client = sessions[0].group or sessions[0].client
            yield Violation("LOST", client, f"{published.message} was acknowledged", published.message)


def _wants(subscriptions: Iterable[Subscription], published: Published) -> bool:
    return any(
        each.granted_at is not None
        and each.granted_at < published.first_sent
        and matches(each.filter, published.message.topic)
        for each in subscriptions
    )


def _early(story: Story, session: Session) -> Iterator[Violation]:
    for reception in session.receptions:
        published = story.published[reception.message]
        asked = [each.asked_at for each in session.subscriptions if matches(each.filter, reception.message.topic)]
        settled = published.settled_at
        if not session.group and settled is not None and asked and settled < min(asked):
            text = f"{reception.message} was acknowledged before the subscription was asked for"
            yield Violation("EARLY", session.client, text, reception.message)


def _forbidden(story: Story, session: Session) -> Iterator[Violation]:
    for reception in session.receptions:
        if story.published[reception.message].duty is Duty.FORBIDDEN:
            text = f"{reception.message} is the will of a client that had sent DISCONNECT"
            yield Violation("FORBIDDEN", session.client, text, reception.message)


def _qos_of(story: Story, session: Session) -> Iterator[Violation]:
    for reception in session.receptions:
        topic = reception.message.topic
        granted = [each.qos for each in session.subscriptions if matches(each.filter, topic)]
        due = min(story.published[reception.message].qos, max(granted, default=-1))
        if reception.qos != due:
            text = f"{reception.message} came with QoS {reception.qos}, not {due}"
            yield Violation("QOS", session.client, text, reception.message)


# delivered how often


def _exactly_once(session: Session) -> Iterator[Violation]:
    """The receiver of QoS 2: a PUBLISH with an open packet id is the same message again, any other one is a new one."""
    seen: set[Message] = set()
    open_ids: dict[int, Reception] = {}
    for entry in session.log:
        if isinstance(entry, Released):
            open_ids.pop(entry.packet_id, None)
            continue
        if entry.qos != 2:
            continue
        before = open_ids.get(entry.packet_id)
        open_ids[entry.packet_id] = entry
        if before is not None and before.message == entry.message:
            if entry.connection == before.connection or not entry.dup:
                text = f"{entry.message} came again with id {entry.packet_id}, dup {entry.dup}, no new connection"
                yield Violation("PACKET_ID", session.client, text, entry.message)
            continue
        if before is not None:
            text = f"id {entry.packet_id} was used for {entry.message} while {before.message} had no PUBREL"
            yield Violation("PACKET_ID", session.client, text, entry.message)
        if entry.message in seen:
            yield Violation("REPEATED", session.client, f"{entry.message} at QoS 2", entry.message)
        seen.add(entry.message)


def _once_in_group(members: list[Session]) -> Iterator[Violation]:
    """At QoS 2 only one member gets a message; that it gets it once is another rule's business."""
    owner: dict[Message, str] = {}
    for session in members:
        for reception in session.receptions:
            if reception.qos == 2 and owner.setdefault(reception.message, session.client) != session.client:
                text = f"{reception.message} at QoS 2, which {owner[reception.message]} had"
                yield Violation("REPEATED", session.client, text, reception.message)


def _at_least_once(story: Story, session: Session) -> Iterator[Violation]:
    by_message: dict[Message, list[Reception]] = defaultdict(list)
    for reception in session.receptions:
        if reception.qos == 1 and not session.group:
            by_message[reception.message].append(reception)
    for message, receptions in by_message.items():
        if len(receptions) == 1:
            continue
        copies, copies_max = _copies(story.connections, receptions), story.published[message].copies_max
        if copies > copies_max:
            text = f"{message} came {copies} times as a new message, at most {copies_max} times it may"
            yield Violation("REPEATED", session.client, text, message)


def _copies(connections: dict[int, Connection], receptions: list[Reception]) -> int:
    """The fewest messages that explain these receptions, each with a chain of redeliveries.

    A reception has at most one follower in its chain: a matching in a graph of few nodes, by augmenting paths.
    """
    follower: dict[int, int] = {}

    def give(again: int, tried: set[int]) -> bool:
        for before in range(again):
            if before in tried or not _explains(connections, receptions[before], receptions[again]):
                continue
            tried.add(before)
            if before not in follower or give(follower[before], tried):
                follower[before] = again
                return True
        return False

    return len(receptions) - sum(give(again, set()) for again in range(len(receptions)))


def _explains(connections: dict[int, Connection], before: Reception, again: Reception) -> bool:
    """Whether a QoS 1 message that came before may come again as a redelivery."""
    first, second = connections[before.connection], connections[again.connection]
    if before.connection == again.connection:
        return False
    if first.life != second.life:
        return True
    arrived = before.answered and first.orderly
    return again.dup and again.packet_id == before.packet_id and not arrived


# in which order


def _order(story: Story, session: Session) -> Iterator[Violation]:
    highest: dict[str, int] = defaultdict(int)
    seen: set[Message] = set()
    for reception in session.receptions:
        message, published = reception.message, story.published[reception.message]
        if message in seen or published.is_will:
            continue
        seen.add(message)
        if published.copies_max > 1 and not _wants(session.subscriptions, published):
            continue
        if message.number < highest[message.topic]:
            text = f"{message} came after number {highest[message.topic]}"
            yield Violation("REORDERED", session.client, text, message)
        highest[message.topic] = max(highest[message.topic], message.number)


# sessions and the rest


def _sessions_present(story: Story, events: Sequence[Event]) -> Iterator[Violation]:
    """A client knows that its session is there after a CONNACK, and not there before its first CONNECT."""
    answered = {event.connection: event.present for event in events if isinstance(event, Connected)}
    known: dict[str, bool | None] = defaultdict(bool)  # None: the client can't know
    for number, connection in story.connections.items():
        expected = False if connection.clean else known[connection.client]
        present = answered.get(number)
        if present is None:
            known[connection.client] = expected if expected and not connection.clean else None
            continue
        if expected is not None and present != expected:
            text = f"session present is {present} in connection {number} (life {connection.life})"
            yield Violation("SESSION", connection.client, text)
        known[connection.client] = connection.kept


def _contents(events: Sequence[Event]) -> Iterator[Violation]:
    for event in events:
        if isinstance(event, Spoiled):
            yield Violation("STRAY", event.client, f"{event.topic}: {event.what}")


def _retained(story: Story, events: Sequence[Event]) -> Iterator[Violation]:
    newest: dict[str, int] = defaultdict(int)
    for published in story.published.values():
        if published.duty is Duty.REQUIRED:
            topic = published.message.topic
            newest[topic] = max(newest[topic], published.message.number)
    for event in events:
        if not isinstance(event, Retained):
            continue
        sent = event.number == 0 or Message(event.topic, event.number) in story.published
        if event.number < newest[event.topic] or not sent:
            text = f"{event.topic} has {event.number}, {newest[event.topic]} was acknowledged"
            yield Violation("RETAINED", "", text)
