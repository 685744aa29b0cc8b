"""Topics that are not what the client wrote: rewrite rules, templates with placeholders, mount points.

Rewrite rules, as users of this feature know them: a rule has an action (``publish``, ``subscribe`` or ``all``), a topic
filter that selects, a regular expression that takes the topic apart and a target that puts it together (``$1`` is the
first group; ``${client_id}`` or ``%c``, ``${username}`` or ``%u`` are the client's).

- Later rules go before earlier ones, and only the first whose *filter* matches is tried: when its expression does not
  match, the topic stays as it is.
- SUBSCRIBE and UNSUBSCRIBE go through the same rules. Of ``$share/group/filter``, ``$queue/filter``,
  ``$exclusive/filter`` and ``$replay/…/filter`` only the filter is rewritten. Its wildcards are text to a rule: ``x/#``
  selects ``x/+/y``, while a ``+`` of a rule does not stand for the ``#`` of a subscription.
- Access is checked before, on the topic that the client wrote.
- A rule whose placeholder has no value (a client without user name), or whose result is no valid topic, does not apply:
  a client id such as ``#`` must not turn one topic into a filter over all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from brookmq.base.errors import ConfigError

Action = Literal["publish", "subscribe", "all"]
TOPIC_BYTES_MAX = 65_535  # what the two-byte length of MQTT can say

_PLACEHOLDER = re.compile(r"\$\{(\w+)\}|%([a-z])")
_TARGET_PART = re.compile(r"\$(\d+)|\$\{(\w+)\}|%([cu])")
_NAMES = {"clientid": "client_id", "c": "client_id", "u": "username"}  # the names that other brokers use
# Matches every filter, often with nothing.
_PREFIX = re.compile(r"(?:\$share/[^/]+/|\$queue/)?(?:\$exclusive/|\$replay/(?:earliest|(?:time|offset)/[^/]*)/)?")


class RewriteRule(NamedTuple):
    """One rule as it is configured."""

    action: Action
    filter: str
    pattern: str
    target: str


def expand(
    template: str, client_id: str, username: str | None = None, *, single_level: bool = False, **more: str | None
) -> str | None:
    """A template with its placeholders filled in: ``${client_id}``, ``${username}`` and whatever ``more`` names.

    None when a placeholder has no value, or one that must not stand in a topic (wildcards, U+0000; with
    ``single_level`` also ``/``, so that a mount point of one client never lies within that of another).
    """
    values = {"client_id": client_id, "username": username, **more}
    forbidden = "+#\0/" if single_level else "+#\0"
    parts: list[str] = []
    end = 0
    for found in _PLACEHOLDER.finditer(template):
        name = found[1] or found[2]
        if found[2] and found[2] not in _NAMES:
            continue  # a percent sign that means itself
        value = values.get(_NAMES.get(name, name))
        if not value or any(character in value for character in forbidden):
            return None
        parts += (template[end : found.start()], value)
        end = found.end()
    return "".join(parts) + template[end:]


def mount(prefix: bytes, topic: bytes) -> bytes:
    """The topic name or filter as the broker knows it, for a client whose listener has a mount point.

    Of a shared or exclusive filter, the part behind the prefix is mounted.
    """
    if not prefix:
        return topic
    if topic.startswith((b"$share/", b"$queue/", b"$exclusive/")):
        found = _PREFIX.match(topic.decode())
        head = found[0].encode() if found is not None else b""
        return head + prefix + topic[len(head) :]
    return prefix + topic


class TopicRewriter:
    """The rules, compiled. ``enabled`` is False without rules, so that asking it is all they cost then."""

    def __init__(self, rules: Sequence[RewriteRule] = ()) -> None:
        compiled = [_CompiledRule(rule, index) for index, rule in enumerate(rules)]
        compiled.reverse()
        self._publish = [rule for rule in compiled if rule.action != "subscribe"]
        self._subscribe = [rule for rule in compiled if rule.action != "publish"]
        self.enabled = bool(compiled)

    def rewrite_publish(self, topic: bytes, client_id: str, username: str | None) -> bytes:
        """The topic that a PUBLISH to ``topic`` goes to."""
        if not self._publish:
            return topic
        rewritten = _rewrite(self._publish, topic.decode(), client_id, username)
        if rewritten is None or "+" in rewritten or "#" in rewritten:
            return topic  # [MQTT-3.3.2-2]: no wildcards in a topic name
        return rewritten.encode()

    def rewrite_filter(self, topic_filter: str, client_id: str, username: str | None) -> str:
        """The filter that a SUBSCRIBE or UNSUBSCRIBE of ``topic_filter`` means."""
        if not self._subscribe:
            return topic_filter
        prefix = _PREFIX.match(topic_filter)
        head = prefix[0] if prefix is not None else ""
        rewritten = _rewrite(self._subscribe, topic_filter[len(head) :], client_id, username)
        return topic_filter if rewritten is None or not _is_filter(rewritten) else head + rewritten


class _CompiledRule:
    __slots__ = ("action", "fill", "levels", "pattern")

    def __init__(self, rule: RewriteRule, index: int) -> None:
        path = f"rewrite[{index}]"
        if rule.action not in ("publish", "subscribe", "all"):
            raise ConfigError(f"{path}.action", f"{rule.action!r} is not publish, subscribe or all")
        if not _is_filter(rule.filter):
            raise ConfigError(f"{path}.filter", f"{rule.filter!r} is not a topic filter")
        try:
            self.pattern = re.compile(rule.pattern)
        except re.error as error:
            raise ConfigError(f"{path}.pattern", f"not a regular expression: {error}") from error
        self.action = rule.action
        self.levels = rule.filter.split("/")
        self.fill = _compile_target(rule.target, self.pattern.groups, f"{path}.target")

    def selects(self, levels: list[str]) -> bool:
        """Whether the rule's filter matches these levels of a topic name or filter."""
        own = self.levels
        if levels[0].startswith("$") and own[0] in ("+", "#"):
            return False  # [MQTT-4.7.2-1]
        for index, level in enumerate(own):
            if level == "#":
                return True
            if index == len(levels) or (level != levels[index] if level != "+" else levels[index] == "#"):
                return False
        return len(own) == len(levels)


_Fill = Callable[["re.Match[str]", str, str | None], str | None]


def _compile_target(target: str, groups: int, path: str) -> _Fill:
    """A function that fills a target: in one pass, so that a value is never read as a placeholder again."""
    parts: list[str | int] = []  # text, or the number of a group; -1 the client id, -2 the user name
    end = 0
    for found in _TARGET_PART.finditer(target):
        parts.append(target[end : found.start()])
        end = found.end()
        name = found[2] or found[3]
        if found[1] is not None:
            if not 1 <= int(found[1]) <= groups:
                raise ConfigError(path, f"${found[1]}: the pattern has {groups} groups")
            parts.append(int(found[1]))
        else:
            name = _NAMES.get(name, name)
            if name not in ("client_id", "username"):
                raise ConfigError(path, f"{found[0]}: no such placeholder")
            parts.append(-1 if name == "client_id" else -2)
    parts.append(target[end:])

    def fill(found: re.Match[str], client_id: str, username: str | None) -> str | None:
        filled: list[str] = []
        for part in parts:
            if isinstance(part, str):
                filled.append(part)
            elif part > 0:
                filled.append(found[part] or "")
            else:
                value = client_id if part == -1 else username
                if not value or "+" in value or "#" in value:
                    return None
                filled.append(value)
        return "".join(filled)

    return fill


def _rewrite(rules: list[_CompiledRule], topic: str, client_id: str, username: str | None) -> str | None:
    levels = topic.split("/")
    for rule in rules:
        if rule.selects(levels):
            found = rule.pattern.search(topic)
            result = rule.fill(found, client_id, username) if found is not None else None
            return result if result and len(result.encode()) <= TOPIC_BYTES_MAX else None
    return None


def _is_filter(text: str) -> bool:
    """[MQTT-4.7.1-1], [MQTT-4.7.1-2], [MQTT-4.7.3-1]: wildcards alone on their level, # only as the last one."""
    levels = text.split("/")
    return bool(text) and all(
        ("+" not in level or level == "+") and ("#" not in level or (level == "#" and index == len(levels) - 1))
        for index, level in enumerate(levels)
    )
