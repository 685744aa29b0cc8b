"""The pipeline's word with its node."""

from __future__ import annotations

import threading

from brookmq.spark.node_client import ConflictError
from brookmq.spark.pipeline.documents import Documents, ReaderFacts
from brookmq.spark.pipeline.reporting import NodeLink
from tests.spark.pipeline.memory_node import MemoryNode
from tests.spark.pipeline.test_display import query, status
from tests.spark.pipeline.test_wanted import documents, rule

WAIT_S = 60.0


def test_changes_are_seen_and_reports_come() -> None:
    node, woken = MemoryNode(), threading.Event()
    link = NodeLink(node, Documents(0), woken.set)
    link.status = status(query())
    link.start()
    assert woken.wait(WAIT_S)
    assert link.documents is node.known
    last = status()
    link.stop(last)
    assert link.ends == node.ends
    assert node.told[-1] == {**last.document(), "ended": True}
    assert node.closed


def test_a_node_that_is_away_is_no_end() -> None:
    node = MemoryNode(trouble=ConnectionError("away"))
    link = NodeLink(node, Documents(0), lambda: None)
    link._attempt(link._look)
    assert link.problem == "away"
    assert link.documents.revision == 0
    node.trouble = None
    link._attempt(link._look)
    assert link.problem is None
    assert link.documents.revision == 1


def test_another_pipeline_has_taken_over() -> None:
    node = MemoryNode(trouble=ConflictError("a newer one"))
    woken = threading.Event()
    link = NodeLink(node, Documents(0), woken.set)
    link.status = status()
    link._attempt(link._report)
    assert link.replaced == "a newer one"
    assert woken.is_set()


def test_readers_of_what_is_gone_are_dropped() -> None:
    facts = ReaderFacts({0: 1}, 1.0)
    names = ["rule.kept", "rule.off", "rule.gone", "table.gone", "rule.running", "report", "rules"]
    node = MemoryNode(
        known=documents(rule("kept"), rule("off", enabled=False)), found_readers=dict.fromkeys(names, facts)
    )
    link = NodeLink(node, node.known, lambda: None)
    link.status = status(query("rule/running"))  # its end is waited for
    link._look()
    assert list(node.found_readers) == ["rule.kept", "rule.off", "rule.running", "report", "rules"]
