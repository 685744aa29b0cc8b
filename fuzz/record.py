"""A pytest plugin that writes what the tests send as programs: `FUZZ_RECORD=FOLDER pytest -p fuzz.record tests/spec`.

One input for each test: its connections take the places in turn, what it sends arrives as it was sent.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest
from tests.harness import raw

from fuzz.program import OPERATIONS_MAX, PLACES, Kind, Operation, build
from fuzz.seeds import VERSION_BITS, frame

SIZE_MAX = 2048  # bytes of one input, as the fuzz target has it
FOLDER = Path(os.environ["FUZZ_RECORD"])


class Recorder:
    """What one test does."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.places: dict[int, int] = {}  # of a stream, by its identity

    def opened(self, stream: object) -> None:
        place = (2 + len(self.places)) % PLACES  # the first two are in use when a program begins
        self.places[id(stream)] = place
        self.operations.append(Operation(Kind.OPEN, place))

    def sent(self, stream: object, data: bytes) -> None:
        place = self.places.get(id(stream), 0)
        self.operations.append(frame(place, data))
        self.operations.append(Operation(Kind.ACKNOWLEDGE, place, b"\x01"))

    def closed(self, stream: object) -> None:
        self.operations.append(Operation(Kind.DROP, self.places.get(id(stream), 0)))

    def write(self) -> None:
        operations = self.operations[:OPERATIONS_MAX]
        data = build(bytes(3), operations)
        while len(data) > SIZE_MAX:
            operations.pop()
            data = build(bytes(3), operations)
        for bits in VERSION_BITS.values():  # of the client that is there already
            data = data[:2] + bytes((bits,)) + data[3:]
            (FOLDER / sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)


@pytest.fixture(autouse=True)
def _record(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    recorder = Recorder()
    opens, sends, closes = raw.Stream.__init__, raw.Stream.send, raw.Stream.close

    def opened(self: Any, *arguments: Any) -> None:
        opens(self, *arguments)
        recorder.opened(self)

    def sent(self: Any, data: bytes) -> None:
        recorder.sent(self, data)
        sends(self, data)

    def closed(self: Any) -> None:
        recorder.closed(self)
        closes(self)

    monkeypatch.setattr(raw, "_run", "")  # names that are the same in every recording
    monkeypatch.setattr(raw.Stream, "__init__", opened)
    monkeypatch.setattr(raw.Stream, "send", sent)
    monkeypatch.setattr(raw.Stream, "close", closed)
    yield
    FOLDER.mkdir(parents=True, exist_ok=True)
    recorder.write()
