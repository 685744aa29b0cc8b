"""Section 4.7: wildcards at the start of a filter match topics that begin with $."""

from brookmq.broker import topics
from brookmq.broker.topics import Entry, TopicIndex

FAILS = "test_4_7_topics.py::test_wildcards_at_the_start_do_not_match_topics_of_the_node[5.0]"

_match = TopicIndex.match


def match(self: TopicIndex, topic: bytes) -> list[Entry]:
    found = _match(self, topic)
    if topic.startswith(b"$"):
        everything: list[Entry] = []
        topics._walk(self.root, topic.split(b"/"), 0, everything)
        found += [entry for entry in everything if entry not in found]
    return found


TopicIndex.match = match  # type: ignore[method-assign]
