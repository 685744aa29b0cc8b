"""The pipeline's word with its node, on a thread of its own: a node that is slow or away holds up no query.

Every second: what changed in the documents, where the journal's end is, and how the queries get on. While the node is
away the queries go on as they are, as far as the store lets them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from brookmq.base.errors import InvariantError
from brookmq.base.pipeline_status import PipelineStatus
from brookmq.spark.node_client import ConflictError
from brookmq.spark.pipeline.documents import RULE, TABLE, Documents, PipelineNode
from brookmq.spark.pipeline.wanted import reader_name, reader_names
from brookmq.spark.positions import Position

log = logging.getLogger("brookmq.spark.pipeline")

EVERY_S: Final = 1.0
TIDIED_EVERY_S: Final = 30.0  # readers of rules that are gone


class NodeLink:
    """``wake`` is called when there are other documents."""

    def __init__(self, node: PipelineNode, first: Documents, wake: Callable[[], None]) -> None:
        self._node = node
        self._wake = wake
        self._thread = threading.Thread(target=self._work, name="brookmq-node", daemon=True)
        self._ended = threading.Event()
        self._tidied_at = 0.0
        # What others read and set: one assignment each.
        self.documents = first
        self.ends: Position | None = None
        self.problem: str | None = None  # why the node can't be asked; None while it answers
        self.status: PipelineStatus | None = None
        self.replaced: str | None = None  # what the node says when another pipeline has taken over

    def start(self) -> None:
        self._thread.start()

    def check(self) -> None:
        """Nobody would see what goes on, nor be heard, if its thread had ended by an error of ours."""
        if not self._thread.is_alive():
            raise InvariantError("the thread that speaks with the node has ended")

    def stop(self, last: PipelineStatus | None) -> None:
        """Ends it, with a last word to the node."""
        self._ended.set()
        self._thread.join(EVERY_S)
        if last is not None and not self._thread.is_alive():
            self.status = last.model_copy(update={"ended": True})
            self._attempt(self._report)
        self._node.close()

    def _work(self) -> None:
        while not self._ended.wait(EVERY_S):
            self._attempt(self._look)
            self._attempt(self._report)

    def _attempt(self, what: Callable[[], None]) -> None:
        try:
            what()
        except (LookupError, OSError, ValueError) as error:
            if self.problem is None:
                log.warning("the node can't be asked: %s", error)
            self.problem = str(error)
        else:
            self.problem = None

    def _look(self) -> None:
        documents = self._node.documents(self.documents)
        if documents is not self.documents:
            self.documents = documents
            self._wake()
        self.ends = self._node.journal().ends
        now = time.monotonic()
        if now - self._tidied_at >= TIDIED_EVERY_S:
            self._tidied_at = now
            self._drop_readers(documents)

    def _report(self) -> None:
        if self.status is None:
            return
        try:
            self._node.put_status(self.status.document())
        except ConflictError as error:
            self.replaced = str(error)
            self._wake()

    def _drop_readers(self, documents: Documents) -> None:
        """A reader of a rule that was deleted would hold back retention for nobody."""
        running = () if self.status is None else (reader_name(query.name) for query in self.status.queries)
        kept = reader_names(documents) | set(running)
        for name in self._node.readers():
            if name.startswith((f"{RULE}.", f"{TABLE}.")) and name not in kept:
                self._node.drop_reader(name)
