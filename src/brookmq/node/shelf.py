"""Documents of one kind, whole in memory, as they are in the table "pipeline".

Memory follows the table whoever changes it, so that an import of a backup is seen like any other change. A document
that this version can't read is told, left where it is, and not shown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from brookmq.base.rule_documents import DocumentError
from brookmq.store.errors import BadRecord
from brookmq.store.pipeline_record import decode_document, encode_document
from brookmq.store.table.states import KeyedStates

log = logging.getLogger("brookmq.node")


class Named(Protocol):
    @property
    def name(self) -> str: ...

    def document(self) -> dict[str, Any]: ...


Kept = TypeVar("Kept", bound=Named)


class Shelf(Generic[Kept]):
    """``prefix`` of the keys, ``noun`` for messages; ``changed`` is called after each change."""

    def __init__(
        self,
        states: KeyedStates,
        prefix: bytes,
        noun: str,
        parse: Callable[[object], Kept],
        changed: Callable[[], None],
    ) -> None:
        self.noun = noun
        self.bytes = 0  # of all documents, as they are kept
        self._states = states
        self._prefix = prefix
        self._parse = parse
        self._changed = changed
        self._known: dict[str, Kept] = {}
        self._sizes: dict[str, int] = {}
        states.watch(prefix, self._follow)

    def load(self) -> None:
        """Call it once all of the table is there."""
        for key, _ in self._states.items(self._prefix):
            self._follow(key)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, name: str) -> Kept | None:
        return self._known.get(name)

    def all(self) -> list[Kept]:
        """By name."""
        return [document for _, document in sorted(self._known.items())]

    def size(self, document: Kept) -> int:
        """Bytes that all documents would have with this one among them."""
        return self.bytes - self._sizes.get(document.name, 0) + len(encode_document(document.document()))

    def put(self, document: Kept, done: Callable[[], None]) -> None:
        """Keep it in place of the one with its name; ``done`` once that is stored."""
        self._states.put(self._key(document.name), encode_document(document.document()), done)

    def remove(self, name: str, done: Callable[[], None]) -> bool:
        """Whether there was one; only then ``done`` is called."""
        return self._states.remove(self._key(name), done)

    def _key(self, name: str) -> bytes:
        return self._prefix + name.encode()

    def _follow(self, key: bytes) -> None:
        name = key.removeprefix(self._prefix).decode("utf-8", "replace")
        state = self._states.get(key)
        self.bytes -= self._sizes.pop(name, 0)
        self._known.pop(name, None)
        if state is not None:
            self.bytes += len(state)
            self._sizes[name] = len(state)
            try:
                self._known[name] = self._parse(decode_document(state))
            except (BadRecord, DocumentError) as error:
                log.warning("the %s %s can't be read, and is left alone: %s", self.noun, name, error)
        self._changed()
