"""Who gets a topic: the index of all subscriptions, and the memory of what it answered.

*Index.* Filters without wildcards are found by one dictionary look-up. The others stand in a trie with one node per
level, where ``+`` and ``#`` have places of their own; a look-up walks at most the branches that match.

*Audience.* What the index found for a topic is kept as long as it is right. A change of a filter without wildcards ends
the audience of that topic alone. A change of a wildcard filter raises the epoch; an audience of an older epoch is right
still when none of the filters changed since then matches its topic (a short list of them is kept), else it is made
anew.

*Kept.* A kept session whose client is away is not among the receivers. Its filters are only counted: as long as the
count of a filter is not zero, what matches it is journaled, and an absent session costs nothing per message.
"""

from __future__ import annotations

from collections import deque
from zlib import crc32

from brookmq.base.counters import Counters
from brookmq.base.events import PREFIX_BYTES as EVENTS_PREFIX
from brookmq.broker.session import Session
from brookmq.broker.shared import SharedGroup
from brookmq.broker.subscription import Subscription, merged
from brookmq.mqtt.topics import matches
from brookmq.store.journal.sharding import shard_hash

AUDIENCE_COUNT_MAX = 262_144  # topics remembered; beyond that all are forgotten and found anew
CHANGES_KEPT = 32  # wildcard changes that an audience is checked against before it is made anew instead


class Entry:
    """All subscriptions of one filter. ``targets`` is their list, made when asked for and shared by audiences."""

    __slots__ = ("filter", "filter_id", "groups", "kept", "subscriptions", "targets")

    def __init__(self, filter: bytes) -> None:
        self.filter = filter
        self.filter_id = crc32(filter).to_bytes(4, "big")
        self.kept = 0  # subscriptions of kept sessions, away ones too, that want what matches it from the journal
        self.subscriptions: dict[Session, Subscription] = {}
        self.groups: dict[str, SharedGroup] = {}
        self.targets: list[Subscription] | None = None

    def everyone(self) -> list[Subscription]:
        if self.targets is None:
            self.targets = [*self.subscriptions.values()]
        return self.targets

    def empty(self) -> bool:
        return not self.subscriptions and not self.groups and not self.kept


class Node:
    """One level of the trie. ``here`` ends at this level, ``below`` is the ``#`` that begins at this level."""

    __slots__ = ("below", "children", "here", "plus")

    def __init__(self) -> None:
        self.children: dict[bytes, Node] = {}
        self.plus: Node | None = None
        self.here: Entry | None = None
        self.below: Entry | None = None

    def unused(self) -> bool:
        return not self.children and self.plus is None and self.here is None and self.below is None


class Audience:
    """Who gets a topic. Nobody changes its lists: a change makes another audience.

    Receivers at QoS 1 and 2 are of two kinds: ``at_once`` are transient, or have granted QoS 0; ``stored`` are kept
    sessions, which get a message when the journal has it. At QoS 0 all ``targets`` are served at once."""

    __slots__ = (
        "at_once",
        "awaited",
        "captured",
        "durable",
        "epoch",
        "everything",
        "filters",
        "groups",
        "shard",
        "stored",
        "stored_groups",
        "targets",
        "topic",
    )

    def __init__(self, topic: bytes, targets: list[Subscription], groups: list[SharedGroup], epoch: int) -> None:
        self.topic = topic
        self.targets = targets
        self.at_once = targets
        self.stored: list[Subscription] = []
        self.groups = groups  # without kept members
        self.stored_groups: list[SharedGroup] = []
        self.durable = False  # what comes at QoS 1 and 2 goes into the journal: a kept session or the pipeline wants it
        self.awaited = False  # a kept session wants it, be its client here or away
        self.captured = False
        self.everything = False  # not all filters are known yet, so it may match more than ``filters``
        self.filters = b""  # ids of the filters of kept sessions and of capture filters that match, four bytes each
        self.shard = shard_hash(topic)  # modulo the number of shards
        self.epoch = epoch  # -1: ended


class TopicIndex:
    """The subscriptions of a node. Invariant: an audience whose epoch is the index's own is right."""

    def __init__(self, counters: Counters) -> None:
        self.counters = counters
        self.epoch = 0
        self.entry_count = 0
        self.exact: dict[bytes, Entry] = {}
        self.root = Node()
        self.audiences: dict[bytes, Audience] = {}
        self.changes: deque[bytes] = deque(maxlen=CHANGES_KEPT)
        self.capture: list[bytes] = []  # filters of the configuration: what matches is journaled for the pipeline
        self.complete = True  # False: filters of kept sessions are still being loaded, so everything is journaled

    # -- changes

    def completed(self, complete: bool) -> None:
        """From now on the filters of all kept sessions are known, or are not."""
        if complete != self.complete:
            self.complete = complete
            self._forget_audiences()

    def keep(self, filter: bytes) -> None:
        """One more kept session wants what matches this filter, whether its client is there or not."""
        entry = self._entry(filter)
        entry.kept += 1
        if entry.kept == 1:
            self._changed(entry)

    def unkeep(self, filter: bytes) -> None:
        entry = self.find(filter)
        if entry is not None and entry.kept:
            entry.kept -= 1
            if entry.kept == 0:
                self._changed(entry)
                if entry.empty():
                    self._forget(entry.filter)

    def add(self, subscription: Subscription) -> None:
        """Add or replace the subscription of a session to a filter."""
        entry = self._entry(subscription.filter)
        entry.subscriptions[subscription.session] = subscription
        self._changed(entry)

    def remove(self, subscription: Subscription) -> None:
        entry = self.find(subscription.filter)
        if entry is not None and entry.subscriptions.get(subscription.session) is subscription:
            del entry.subscriptions[subscription.session]
            self._changed(entry)
            if entry.empty():
                self._forget(entry.filter)

    def group(self, name: str, filter: bytes) -> SharedGroup | None:
        entry = self.find(filter)
        return None if entry is None else entry.groups.get(name)

    def add_group(self, group: SharedGroup) -> None:
        entry = self._entry(group.filter.encode())
        entry.groups[group.name] = group
        self._changed(entry)

    def remove_group(self, group: SharedGroup) -> None:
        entry = self.find(group.filter.encode())
        if entry is not None and entry.groups.pop(group.name, None) is not None:
            self._changed(entry)
            if entry.empty():
                self._forget(entry.filter)

    def _changed(self, entry: Entry) -> None:
        entry.targets = None
        if wild(entry.filter):
            self.epoch += 1
            self.changes.append(entry.filter)
        else:
            audience = self.audiences.pop(entry.filter, None)
            if audience is not None:
                audience.epoch = -1

    # -- filters

    def find(self, filter: bytes) -> Entry | None:
        if not wild(filter):
            return self.exact.get(filter)
        node: Node | None = self.root
        levels = filter.split(b"/")
        for level in levels:
            if node is None:
                return None
            if level == b"#":
                return node.below
            node = node.plus if level == b"+" else node.children.get(level)
        return None if node is None else node.here

    def _entry(self, filter: bytes) -> Entry:
        entry = self.find(filter)
        if entry is not None:
            return entry
        entry = Entry(filter)
        self.entry_count += 1
        if not wild(filter):
            self.exact[filter] = entry
            return entry
        node = self.root
        for level in filter.split(b"/"):
            if level == b"#":
                node.below = entry
                return entry
            if level == b"+":
                if node.plus is None:
                    node.plus = Node()
                node = node.plus
            else:
                child = node.children.get(level)
                if child is None:
                    child = node.children[level] = Node()
                node = child
        node.here = entry
        return entry

    def _forget(self, filter: bytes) -> None:
        """Take a filter without subscriptions out, with the nodes that only it needed."""
        self.entry_count -= 1
        if not wild(filter):
            del self.exact[filter]
            return
        path: list[tuple[Node, bytes]] = []
        node = self.root
        for level in filter.split(b"/"):
            if level == b"#":
                node.below = None
                break
            path.append((node, level))
            child = node.plus if level == b"+" else node.children.get(level)
            if child is None:
                return
            node = child
        else:
            node.here = None
        while path and node.unused():
            node, level = path.pop()
            if level == b"+":
                node.plus = None
            else:
                del node.children[level]

    # -- look-ups

    def audience(self, topic: bytes) -> Audience:
        """Who gets this topic now."""
        audience = self.audiences.get(topic)
        if audience is not None:
            if audience.epoch == self.epoch or self._still_right(audience):
                return audience
            audience.epoch = -1
        elif len(self.audiences) >= AUDIENCE_COUNT_MAX:
            self._forget_audiences()
        self.counters.topic_cache_misses += 1
        audience = self._gather(topic)
        self.audiences[topic] = audience
        return audience

    def _forget_audiences(self) -> None:
        self.audiences.clear()
        self.changes.clear()
        self.epoch += CHANGES_KEPT + 1  # connections remember audiences too: end all of them

    def _still_right(self, audience: Audience) -> bool:
        missed = self.epoch - audience.epoch
        if audience.epoch < 0 or missed > len(self.changes):
            return False
        for i in range(1, missed + 1):
            if matches(self.changes[len(self.changes) - i], audience.topic):  # compiled, -i does not count from the end
                return False
        audience.epoch = self.epoch
        return True

    def _gather(self, topic: bytes) -> Audience:
        entries = self.match(topic)
        groups: list[SharedGroup] = []
        for entry in entries:
            groups.extend(entry.groups.values())
        if len(entries) == 1:
            return self._sort(Audience(topic, entries[0].everyone(), groups, self.epoch), entries)
        best: dict[Session, Subscription] = {}
        for entry in entries:
            for subscription in entry.everyone():
                session = subscription.session
                other = best.get(session)
                best[session] = subscription if other is None else merged(other, subscription)
        return self._sort(Audience(topic, [*best.values()], groups, self.epoch), entries)

    def _sort(self, audience: Audience, entries: list[Entry]) -> Audience:
        """Who is served at once, who when the journal has it."""
        for entry in entries:
            if entry.kept:
                audience.awaited = True
                audience.filters += entry.filter_id
        if self.capture and (not audience.topic.startswith(b"$") or audience.topic.startswith(EVENTS_PREFIX)):
            ids = _matching_ids(self.capture, audience.topic)
            audience.captured = bool(ids)
            audience.filters += ids
        if not self.complete:
            audience.everything = True
        audience.durable = audience.awaited or audience.captured or audience.everything
        if audience.durable:
            audience.at_once = []
            for subscription in audience.targets:
                if subscription.session.kept and subscription.qos:
                    audience.stored.append(subscription)
                else:
                    audience.at_once.append(subscription)
            audience.stored_groups = [group for group in audience.groups if group.kept_count]
            if audience.stored_groups:
                audience.groups = [group for group in audience.groups if not group.kept_count]
        return audience

    def filter_id(self, filter: bytes) -> int:
        """By this number batches of the journal say what is in them. Two filters may have the same."""
        return crc32(filter)

    def filter_ids(self, session: Session) -> frozenset[int]:
        """Of all that a session reads the journal for."""
        return frozenset([crc32(each.filter) for each in session.subscriptions.values() if each.counted])

    def subscription_of(self, session: Session, topic: bytes) -> Subscription | None:
        """What one session has for a topic: its subscriptions that match it, merged. [MQTT-3.3.4-2]"""
        found: Subscription | None = None
        for entry in self.match(topic):
            subscription = entry.subscriptions.get(session)
            if subscription is not None and subscription.qos:
                found = subscription if found is None else merged(found, subscription)
        return found

    def match(self, topic: bytes) -> list[Entry]:
        """The entries of all filters that match a topic name."""
        found: list[Entry] = []
        entry = self.exact.get(topic)
        if entry is not None:
            found.append(entry)
        root = self.root
        if root.unused():
            return found
        levels = topic.split(b"/")
        if topic.startswith(b"$"):  # a wildcard in front does not match these [MQTT-4.7.2-1]
            child = root.children.get(levels[0])
            if child is not None:
                _walk(child, levels, 1, found)
        else:
            _walk(root, levels, 0, found)
        return found


def _matching_ids(filters: list[bytes], topic: bytes) -> bytes:
    """By these a reader of the journal finds the batches that hold something of a capture filter."""
    return b"".join([crc32(filter).to_bytes(4, "big") for filter in filters if matches(filter, topic)])


def wild(filter: bytes) -> bool:
    return b"+" in filter or b"#" in filter


def _walk(node: Node, levels: list[bytes], depth: int, found: list[Entry]) -> None:
    if node.below is not None:
        found.append(node.below)  # "#" matches the level above it too [MQTT-4.7.1-2]
    if depth == len(levels):
        if node.here is not None:
            found.append(node.here)
        return
    child = node.children.get(levels[depth])
    if child is not None:
        _walk(child, levels, depth + 1, found)
    if node.plus is not None:
        _walk(node.plus, levels, depth + 1, found)
