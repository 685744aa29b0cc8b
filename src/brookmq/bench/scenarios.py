"""The ready shapes of a message load. Each makes the clients of a fleet; ``measure`` runs any of them alike."""

from __future__ import annotations

from typing import Final

from brookmq.bench.fleet import Fleet
from brookmq.bench.packets import NumberedTopic, SerialTopic, Topic
from brookmq.bench.settings import LoadError

FILTER_SUBSCRIBERS: Final = 100
FILTER_SHAPES: Final = ("{0}/wild/{1}/+", "{0}/wild/{1}/#", "{0}/+/{1}/+", "{0}/+/{1}/#")
SEEN_TOPICS: Final = 1000
NEW_TOPIC_STRIDE: Final = 7919
"""A prime: new topics go over all filters evenly, in no order that a broker could profit from."""
SERIALS_PER_PUBLISHER: Final = 10**8


def publishers_only(fleet: Fleet, count: int, topic: str, topics: int = 1) -> None:
    """``%i`` in the topic is the publisher's number, ``%n`` one of ``topics`` numbers, another with every message.

    Each publisher is bounded by its own socket or window, nothing else.
    """
    for number in range(count):
        made = numbered_topic(topic.replace("%i", str(number)), topics)
        fleet.publisher(made, fleet.flow(copies=0), first_serial=number * topics // count)


def padded(number: int, numbers: int) -> str:
    """One of ``numbers`` numbers, all of the same width: filters and topics made from one number have to be equal."""
    return f"{number:0{len(str(numbers - 1))}d}"


def numbered_topic(topic: str, topics: int) -> Topic:
    if "%n" not in topic:
        return topic.encode()
    prefix, _, suffix = topic.encode().partition(b"%n")
    stride = NEW_TOPIC_STRIDE if topics % NEW_TOPIC_STRIDE else 1  # else some numbers would never come up
    return NumberedTopic(prefix, len(padded(0, topics)), topics, stride, suffix)


def subscribers_only(fleet: Fleet, count: int, topic_filter: str) -> None:
    for number in range(count):
        fleet.subscriber([topic_filter.replace("%i", str(number)).encode()], None)


def pairs(fleet: Fleet, count: int) -> None:
    """Publisher N to subscriber N on a topic of their own."""
    for number in range(count):
        flow = fleet.flow(copies=1)
        topic = f"{fleet.settings.prefix}/pairs/{number}".encode()
        fleet.subscriber([topic], flow)
        fleet.publisher(topic, flow)


def fan_in(fleet: Fleet, publishers: int) -> None:
    """Many publishers, each with its own topic, and one subscriber with one filter for all."""
    flow = fleet.flow(copies=1, publishers=publishers)
    fleet.subscriber([f"{fleet.settings.prefix}/fan-in/+".encode()], flow)
    for number in range(publishers):
        fleet.publisher(f"{fleet.settings.prefix}/fan-in/{number}".encode(), flow)


def fan_out(fleet: Fleet, subscribers: int, publishers: int = 1) -> None:
    """Every message goes to every subscriber."""
    flow = fleet.flow(copies=subscribers, publishers=publishers)
    for _ in range(subscribers):
        fleet.subscriber([f"{fleet.settings.prefix}/fan-out/+".encode()], flow)
    for number in range(publishers):
        fleet.publisher(f"{fleet.settings.prefix}/fan-out/{number}".encode(), flow)


def shared(fleet: Fleet, publishers: int, members: int) -> None:
    """Every message goes to one member of a shared group."""
    flow = fleet.flow(copies=1, publishers=publishers)
    for _ in range(members):
        fleet.subscriber([f"$share/bench/{fleet.settings.prefix}/shared/+".encode()], flow)
    for number in range(publishers):
        fleet.publisher(f"{fleet.settings.prefix}/shared/{number}".encode(), flow)


def wildcard_filter(prefix: str, number: int, width: int) -> bytes:
    """Four shapes of filters, mixed; each matches the topics of its own number and no other."""
    digits = f"{number:0{width}d}"
    shape = FILTER_SHAPES[sum(map(int, digits)) % len(FILTER_SHAPES)]
    return shape.format(prefix, digits).encode()


def wildcards(fleet: Fleet, publishers: int, filters: int, *, new_topics: bool) -> None:
    """``filters`` distinct wildcard filters, every topic matched by one of them.

    Topics seen before: the publishers go round 1,000 topics. New topics: no topic is ever used twice.
    """
    if filters < SEEN_TOPICS or filters % SEEN_TOPICS:
        raise LoadError(f"the number of filters has to be a multiple of {SEEN_TOPICS:,}")
    prefix, width = fleet.settings.prefix, len(str(filters - 1))
    flow = fleet.flow(copies=1, publishers=publishers)
    share = filters // FILTER_SUBSCRIBERS
    for first in range(0, filters, share):
        numbers = range(first, first + share)
        fleet.subscriber([wildcard_filter(prefix, number, width) for number in numbers], flow)
    if new_topics:
        topic = SerialTopic(f"{prefix}/wild/".encode(), width, filters, NEW_TOPIC_STRIDE, 11, 10**11)
    else:
        topic = SerialTopic(f"{prefix}/wild/".encode(), width, filters, filters // SEEN_TOPICS, 11, SEEN_TOPICS)
    for number in range(publishers):
        serial = number * (SERIALS_PER_PUBLISHER if new_topics else SEEN_TOPICS // publishers)
        fleet.publisher(topic, flow, first_serial=serial)
