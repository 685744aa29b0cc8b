from typing import Final, TypeAlias

STAMP_BYTES: Final = 8

NumberField: TypeAlias = tuple[int, int, int, int]

class Latencies:
    highest: int
    def clear(self) -> None: ...
    def record(self, nanoseconds: int, times: int) -> None: ...
    def counts(self) -> list[int]: ...

class Inbox:
    version: int
    latencies: Latencies
    received: int
    received_bytes: int
    duplicates: int
    acknowledged: int
    refused: int
    granted: int
    denied: int
    pings: int
    closed_with: int
    connack: bytes | None
    def __init__(self, version: int, latencies: Latencies) -> None: ...
    def restore(self, buffer: bytearray) -> int: ...
    def feed(self, buffer: bytearray, end: int, now: int) -> bytes | None: ...

class PublishBlock:
    data: bytearray
    packet_length: int
    capacity: int
    serial: int
    def __init__(
        self,
        packet: bytes,
        capacity: int,
        id_offset: int = -1,
        stamp_offset: int = -1,
        first: NumberField | None = None,
        second: NumberField | None = None,
    ) -> None: ...
    def fill(self, count: int, stamp: int) -> int: ...

class NullInbox:
    received: int
    def restore(self, buffer: bytearray) -> int: ...
    def feed(self, buffer: bytearray, end: int) -> bytes | None: ...
