"""Who gets a topic: the index of all subscriptions, and the memory of what it answered.

*Index.* Filters without wildcards are found by one dictionary look-up. The others stand in a trie with one node per
level, where ``+`` and ``#`` have places of their own; a look-up walks at most the branches that match.

*Audience.* What the index found for a topic is kept as long as it is right. A change of a filter without wildcards ends
the audience of that topic alone. A change of a wildcard filter raises the epoch; an audience of an older epoch is right
still when none of the filters changed since then matches its topic (a short list of them is kept), else it is made
anew.
"""

from __future__ import annotations

from collections import deque

from brookmq.base.counters import Counters
from brookmq.broker.session import Session
from brookmq.broker.shared import SharedGroup
from brookmq.broker.subscription import Subscription, merged
from brookmq.mqtt.topics import matches

AUDIENCE_COUNT_MAX = 262_144  # topics remembered; beyond that all are forgotten and found anew
CHANGES_KEPT = 32  # wildcard changes that an audience is checked against before it is made anew instead


class Entry:
    """All subscriptions of one filter. ``targets`` is their list, made when asked for and shared by audiences."""

    __slots__ = ("filter", "groups", "subscriptions", "targets")

    def __init__(self, filter: bytes) -> None:
        self.filter = filter
        self.subscriptions: dict[Session, Subscription] = {}
        self.groups: dict[str, SharedGroup] = {}
        self.targets: list[Subscription] | None = None

    def everyone(self) -> list[Subscription]:
        if self.targets is None:
            self.targets = [*self.subscriptions.values()]
        return self.targets

    def empty(self) -> bool:
        return not self.subscriptions and not self.groups


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
    """Who gets a topic. Nobody changes ``targets`` and ``groups``: a change makes another audience."""

    __slots__ = ("epoch", "groups", "targets", "topic")

    def __init__(self, topic: bytes, targets: list[Subscription], groups: list[SharedGroup], epoch: int) -> None:
        self.topic = topic
        self.targets = targets
        self.groups = groups
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

    # -- changes

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
            self.audiences.clear()
            self.changes.clear()
            self.epoch += CHANGES_KEPT + 1  # connections remember audiences too: end all of them
        self.counters.topic_cache_misses += 1
        audience = self._gather(topic)
        self.audiences[topic] = audience
        return audience

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
            return Audience(topic, entries[0].everyone(), groups, self.epoch)
        best: dict[Session, Subscription] = {}
        for entry in entries:
            for subscription in entry.everyone():
                session = subscription.session
                other = best.get(session)
                best[session] = subscription if other is None else merged(other, subscription)
        return Audience(topic, [*best.values()], groups, self.epoch)

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
