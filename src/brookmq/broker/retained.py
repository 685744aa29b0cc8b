"""Retained messages: the last one of each topic, found by name and by topic filter.

Rules
- One message per topic; an empty payload deletes it [MQTT-3.3.1-6, -7, -10].
- A wildcard at the first level does not see topics that begin with ``$`` [MQTT-4.7.2-1].
- An expired message is never handed out, and is removed when it is met.
- A limit refuses the new message and changes nothing: the topic keeps what it had.

Why sorted keys and not a tree of levels: a new subscription to ``#`` may match a million topics, so it is answered in
slices while publishers go on changing the store. A scan that remembers only the *last key* that it looked at can go on
from there whatever was added or removed meanwhile, and never meets a key twice. The key of a topic is the topic with
``/`` replaced by ``\\0`` (which no topic contains [MQTT-4.7.3-2]): a topic then sorts directly before everything below
it, which makes each subtree one range, and a scan jumps over the ranges that its filter cannot match.

Sizes: besides the message, a topic costs its key, one slot in a list and one in a dictionary. The dictionary is cut in
parts, because one that holds a million entries stops the loop for 60 ms whenever it grows. They are the parts of the
table that keeps the messages in the store (``durable_values``), where a part is loaded and written as one.

After a start the parts come in one by one. What is set or deleted before its part is there counts: what was loaded
never replaces it. The limits see only what is there.
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from brookmq.base.errors import InvariantError
from brookmq.base.message import Message
from brookmq.broker.sorted_keys import SortedKeys
from brookmq.store.table.interface import PARTS

TABLE_PREFIX = b"r"  # in front of a topic: its key in the table
_PREFIX_CRC = crc32(TABLE_PREFIX)
SCAN_STEPS_MAX = 1024  # keys that one call of a scan looks at when few of them match: about 2 ms


def _key(topic: bytes) -> bytes:
    return topic.replace(b"/", b"\0")


def part_of_topic(topic: bytes) -> int:
    """The part of the table that has the topic's key, without making the key."""
    return crc32(topic, _PREFIX_CRC) % PARTS


class RetainedStore:
    """All retained messages of a node. A limit of 0 is none."""

    def __init__(self, count_max: int = 0, bytes_max: int = 0, payload_max: int = 0) -> None:
        self.count_max = count_max  # topics
        self.bytes_max = bytes_max  # sum of Message.size() of all
        self.payload_max = payload_max  # bytes of one payload
        self.count = 0  # topics with a message, expired ones included until they are met
        self.bytes = 0  # sum of Message.size() of these
        self.refused = 0  # messages that a limit kept out
        self.expired = 0  # messages removed because their time was over
        self._expiring = 0  # of count, those with an expiry: a sweep has nothing to do when there is none
        self.on_set: Callable[[Message], None] | None = None  # told of every message that was taken
        self.on_delete: Callable[[bytes, bool], None] | None = None  # a topic, and whether it had a message here
        self._parts: list[dict[bytes, Message]] = [{} for _ in range(PARTS)]  # by topic
        self.keys = SortedKeys()  # of all topics with a message; for scans
        self._sweep_key = b""  # where the next sweep goes on

    def set(self, message: Message, now: float) -> bool:
        """Keep the message as the last one of its topic; False when a limit refuses it (nothing changes then)."""
        if not message.payload or message.expired(now):
            self.delete(message.topic)  # [MQTT-3.3.1-6], and [MQTT-3.3.1-7]: an empty one is never stored
            return True
        topic = message.topic
        part = self._parts[part_of_topic(topic)]
        old = part.get(topic)
        size = message.size()
        bytes_after = self.bytes + size - (old.size() if old is not None else 0)
        if (
            (self.payload_max and len(message.payload) > self.payload_max)
            or (self.bytes_max and bytes_after > self.bytes_max and bytes_after > self.bytes)
            or (self.count_max and old is None and self.count >= self.count_max)
        ):
            self.refused += 1
            return False
        part[topic] = message
        self.bytes = bytes_after
        self._expiring += (message.expires_at != 0.0) - (old is not None and old.expires_at != 0.0)
        if old is None:
            self.count += 1
            self.keys.add(_key(topic))
        if self.on_set is not None:
            self.on_set(message)
        return True

    def restore(self, message: Message) -> None:
        """Put back what was kept, unless the topic has a newer message. No limit holds: it was taken once."""
        part = self._parts[part_of_topic(message.topic)]
        if message.topic not in part:
            part[message.topic] = message
            self.bytes += message.size()
            self._expiring += message.expires_at != 0.0
            self.count += 1
            self.keys.add(_key(message.topic))

    def put(self, message: Message) -> None:
        """Keep a message instead of what the topic has, without limits: it was taken once, by another node."""
        self.delete(message.topic)
        self.restore(message)
        if self.on_set is not None:
            self.on_set(message)

    def get(self, topic: bytes, now: float) -> Message | None:
        """The message of a topic; an expired one is removed instead."""
        message = self._parts[part_of_topic(topic)].get(topic)
        if message is not None and message.expired(now):
            self.expired += 1
            self.delete(topic)
            return None
        return message

    def delete(self, topic: bytes) -> bool:
        """Remove the message of a topic; True when there was one."""
        message = self._parts[part_of_topic(topic)].pop(topic, None)
        if message is not None:
            self.count -= 1
            self.bytes -= message.size()
            self._expiring -= message.expires_at != 0.0
            self.keys.remove(_key(topic))
        if self.on_delete is not None:
            self.on_delete(topic, message is not None)
        return message is not None

    def topics(self, part: int) -> list[bytes]:
        """The topics of one part, as they are now."""
        return [*self._parts[part]]

    def peek(self, topic: bytes) -> Message | None:
        """The message of a topic, expired or not."""
        return self._parts[part_of_topic(topic)].get(topic)

    def scan(self, topic_filter: bytes) -> RetainedScan:
        """Begin to read what matches a filter (without ``$share`` or other prefixes)."""
        return RetainedScan(self, topic_filter)

    def sweep(self, now: float, limit: int) -> int:
        """Look at up to ``limit`` more topics and remove what is expired; how many were. Goes round and round."""
        removed = 0
        if not self._expiring:
            return removed
        keys, offset = self.keys.run(self._sweep_key)
        seen = keys[offset : offset + limit]
        for key in seen:
            removed += self.take(key, now) is None
        self._sweep_key = seen[-1] + b"\0" if seen else b""  # the smallest key after the last one
        return removed

    def page(self, after: bytes, limit: int, match: bytes | None, now: float) -> tuple[list[Message], bytes | None]:
        """A page of a listing in the store's order: messages of the topics after ``after`` (b"" = from the start).

        Returns them with the ``after`` of the next page, None when this was the last. ``match`` is a filter; None lists
        everything, ``$`` topics included. A page may be shorter than the limit, even empty, without being the last.
        """
        scan = RetainedScan(self, match)
        if after:
            scan.cursor = _key(after) + b"\0"
        messages = scan.next(limit, now)
        return messages, None if scan.done else scan.last.replace(b"\0", b"/")

    def take(self, key: bytes, now: float) -> Message | None:
        """The message of a key; an expired one is removed instead."""
        return self.get(key.replace(b"\0", b"/"), now)

    def check_invariants(self) -> None:
        """Raise InvariantError when the parts disagree; for tests."""
        self.keys.check_invariants()
        messages = {topic: message for part in self._parts for topic, message in part.items()}
        sizes = sum(message.size() for message in messages.values())
        expiring = sum(message.expires_at != 0.0 for message in messages.values())
        if (len(messages), sizes, expiring) != (self.count, self.bytes, self._expiring):
            raise InvariantError("retained: the figures are not those of the messages")
        if sorted(map(_key, messages)) != list(self.keys):
            raise InvariantError("retained: the sorted keys are not those of the messages")
        if any(message.topic != topic or not message.payload for topic, message in messages.items()):
            raise InvariantError("retained: a message under a wrong topic or without payload")
        if any(part_of_topic(topic) != part for part in range(PARTS) for topic in self._parts[part]):
            raise InvariantError("retained: a message in a wrong part")


class RetainedScan:
    """The messages that match one filter, read in slices. What is set or deleted meanwhile may or may not appear."""

    __slots__ = ("_levels", "_store", "cursor", "done", "last")

    def __init__(self, store: RetainedStore, topic_filter: bytes | None) -> None:
        self._store = store
        self._levels = topic_filter.split(b"/") if topic_filter is not None else None
        self.done = False  # True: nothing more will come
        self.last = b""  # the last key that was looked at
        self.cursor = b""  # all keys below it are behind us

    def next(self, limit: int, now: float) -> list[Message]:
        """Up to ``limit`` more messages. An empty list with ``done`` still False means: call again, later."""
        found: list[Message] = []
        levels = self._levels
        if levels is not None and b"+" not in levels and levels[-1] != b"#":
            self._step(b"\0".join(levels), now, found)
            self.done = True
            return found
        steps = max(SCAN_STEPS_MAX, limit)
        while len(found) < limit and steps > 0 and not self.done:
            keys, offset = self._store.keys.run(self.cursor)
            if not keys:
                self.done = True
                break
            steps -= 1
            key = keys[offset]
            jump = _jump(key, levels)
            if jump == key:
                self._step(key, now, found)
                self.cursor = key + b"\0"
            elif jump:
                self.cursor = jump
            else:
                self.done = True
            self.last = key
        return found

    def _step(self, key: bytes, now: float, found: list[Message]) -> None:
        message = self._store.take(key, now)
        if message is not None:
            found.append(message)


def _jump(key: bytes, levels: list[bytes] | None) -> bytes:
    """``key`` itself when it matches, else the least key after it that may match, else b"" (there is none)."""
    if levels is None:
        return key
    if key[:1] == b"$" and levels[0] in (b"+", b"#"):
        return b"%"  # [MQTT-4.7.2-1]: the first key after all that begin with $
    names = key.split(b"\0")
    plus = -1  # the last level so far that a + stands for
    for index, level in enumerate(levels):
        if level == b"#":
            return key  # [MQTT-4.7.1-2]: the parent level too
        if index == len(names):
            return key + b"\0" + _literals(levels, index)
        if level == b"+":
            plus = index
        elif names[index] < level:
            return b"\0".join([*names[:index], _literals(levels, index)])
        elif names[index] > level:
            # Nothing more below the name that the last + stands for: on to its next sibling.
            return b"\0".join(names[: plus + 1]) + b"\1" if plus >= 0 else b""
    if len(names) == len(levels):
        return key
    return b"\0".join(names[: plus + 1]) + b"\1" if plus >= 0 else b""


def _literals(levels: list[bytes], start: int) -> bytes:
    """The names that a filter demands from ``start`` on, up to its next wildcard."""
    end = start
    while end < len(levels) and levels[end] not in (b"+", b"#"):
        end += 1
    return b"\0".join(levels[start:end])
