"""The plain twin of ``kernel.pyx``: runs of PUBLISH packets and runs of acknowledgements.

It is what runs without a compiler, and what the compiled kernel is tested against; the reasons stand there.
"""

from __future__ import annotations

COMPILED = False
RUN_COUNT_MAX = 500  # messages in one run


def frame(data: bytes, pos: int) -> tuple[int, int]:
    """``(body, end)`` of the packet at ``pos``. ``end`` lies beyond the data when the packet is not all there yet; it
    is 0 when even the length is not there, -1 when the length is malformed."""
    at = pos + 1
    value = shift = 0
    while True:
        if at >= len(data):
            return 0, 0
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if byte == 0 and shift > 0:
                return 0, -1  # longer than needed [MQTT-1.5.5-1]
            return at, at + value
        shift += 7
        if shift > 21:
            return 0, -1


def _length(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Run:
    """Consecutive plain PUBLISH packets of one topic and one QoS inside ``data[start:end]``."""

    def __init__(self) -> None:
        self.data = b""
        self.start = 0
        self.end = 0
        self.count = 0
        self.qos = 0
        self.version5 = False
        self.largest = 0
        self.topic_size = 0
        self._topic = b""
        self._fixed = 0
        self._rest_at: list[int] = []
        self._end_at: list[int] = []
        self._qos0: dict[bool, bytes] = {}

    def scan(self, data: bytes, pos: int, version5: bool, packet_size_max: int) -> int:
        """Take the run that begins at ``pos``. Returns its end, or 0 when the packet there is not plain, not complete
        or not well formed (the slow way finds out which)."""
        head = data[pos]
        qos = head >> 1 & 3
        if head & 0xF9 != 0x30 or qos == 3:
            return 0
        fixed = (2 if qos else 0) + (1 if version5 else 0)
        start, largest, prefix = pos, 0, b""
        rest_at: list[int] = []
        end_at: list[int] = []
        while len(rest_at) < RUN_COUNT_MAX and pos < len(data) and data[pos] == head:
            body, stop = frame(data, pos)
            if stop <= 0 or stop > len(data) or stop - pos > packet_size_max or stop - body < 2:
                break
            if not prefix:
                topic_size = data[body] << 8 | data[body + 1]
                if topic_size == 0 or body + 2 + topic_size + fixed > stop:
                    break
                prefix = data[body : body + 2 + topic_size]
            elif body + len(prefix) + fixed > stop or not data.startswith(prefix, body):
                break
            at = body + len(prefix)
            if qos and data[at] == 0 and data[at + 1] == 0:
                break  # packet id 0: the slow way answers it [MQTT-2.2.1-2]
            if version5 and data[at + fixed - 1] != 0:
                break
            rest_at.append(at)
            end_at.append(stop)
            largest = max(largest, stop - pos)
            pos = stop
        if not rest_at:
            return 0
        self.data, self.start, self.end, self.count = data, start, pos, len(rest_at)
        self.qos, self.version5, self.largest = qos, version5, largest
        self._topic, self.topic_size, self._fixed = prefix[2:], len(prefix) - 2, fixed
        self._rest_at, self._end_at, self._qos0 = rest_at, end_at, {}
        return pos

    def has_topic(self, topic: bytes) -> bool:
        """True when its topic is the given one."""
        return self._topic == topic

    def topic(self) -> bytes:
        return self._topic

    def ids(self) -> bytes:
        """The packet ids as they stand in the packets, two bytes each."""
        return b"".join([self.data[at : at + 2] for at in self._rest_at])

    def payload(self, index: int) -> bytes:
        return self.data[self._rest_at[index] + self._fixed : self._end_at[index]]

    def qos0(self, version5: bool) -> bytes:
        """All its messages as QoS 0 packets for one protocol version, made once for all receivers."""
        result = self._qos0.get(version5)
        if result is None:
            if self.qos == 0 and self.version5 == version5:
                result = self.data[self.start : self.end]
            else:
                result = self._encode(version5, 0, b"", 0, self.count)
            self._qos0[version5] = result
        return result

    def with_ids(self, version5: bool, qos: int, ids: bytes, first: int) -> bytes:
        """The messages from ``first`` on, as many as there are ids, as packets of this QoS with these packet ids."""
        return self._encode(version5, qos, ids, first, len(ids) // 2)

    def _encode(self, version5: bool, qos: int, ids: bytes, first: int, count: int) -> bytes:
        head = bytes((0x30 | qos << 1,))
        topic = self.topic_size.to_bytes(2, "big") + self._topic
        parts = []
        for i in range(count):
            packet_id = ids[2 * i : 2 * i + 2] if qos else b""
            body = topic + packet_id + (b"\0" if version5 else b"") + self.payload(first + i)
            parts.append(head + _length(len(body)) + body)
        return b"".join(parts)


def ack_ids(data: bytes, pos: int) -> bytes:
    """The packet ids of the acknowledgements of one type in their shortest form (four bytes each) from ``pos`` on.
    Empty when the packet there has another form."""
    start = data[pos : pos + 1] + b"\x02"
    ids = bytearray()
    while data.startswith(start, pos) and pos + 4 <= len(data) and data[pos + 2 : pos + 4] != b"\0\0":
        ids += data[pos + 2 : pos + 4]
        pos += 4
    return bytes(ids)


def acks(head: int, ids: bytes) -> bytes:
    """Acknowledgements in their shortest form, one for each packet id. ``head`` is their first byte."""
    start = bytes((head, 2))
    return b"".join([start + ids[i : i + 2] for i in range(0, len(ids), 2)])
