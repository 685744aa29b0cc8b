"""The PROXY parser alone: what is a header, what is not, and that it never wants a byte too many."""

from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.edge.proxy_protocol import V1_BYTES_MAX, V2_BYTES_MAX, ProxyHeader, ProxyHeaderError, ProxyHeaderParser

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
INET = socket.inet_pton(socket.AF_INET, "192.0.2.7") + socket.inet_pton(socket.AF_INET, "198.51.100.1")
INET_PORTS = struct.pack("!HH", 40_000, 1883)
INET6 = socket.inet_pton(socket.AF_INET6, "2001:db8::7") + socket.inet_pton(socket.AF_INET6, "2001:db8::1")


def v2(body: bytes, command: int = 0x21, family: int = 0x11, length: int | None = None) -> bytes:
    return SIGNATURE + struct.pack("!BBH", command, family, len(body) if length is None else length) + body


def tlv(kind: int, value: bytes) -> bytes:
    return struct.pack("!BH", kind, len(value)) + value


def parse(data: bytes, rest: bytes = b"REST") -> ProxyHeader:
    """As a listener reads it: never more than what is wanted, and in the end nothing of what follows."""
    stream, parser, at = data + rest, ProxyHeaderParser(), 0
    while True:
        assert parser.wanted > 0
        piece = stream[at : at + parser.wanted]
        assert piece, "it wants more than the header has"
        at += len(piece)
        header = parser.feed(piece)
        if header is not None:
            assert at == len(data), "it read beyond the header or not all of it"
            return header


@pytest.mark.parametrize(
    ("line", "source", "destination"),
    [
        (b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 1883\r\n", ("192.0.2.7", 40_000), ("198.51.100.1", 1883)),
        (b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n", ("1.1.1.1", 1), ("2.2.2.2", 2)),
        (b"PROXY TCP4 255.255.255.255 0.0.0.0 65535 0\r\n", ("255.255.255.255", 65_535), ("0.0.0.0", 0)),
        (b"PROXY TCP6 2001:db8::7 ::1 40000 1883\r\n", ("2001:db8::7", 40_000), ("::1", 1883)),
        (b"PROXY UNKNOWN\r\n", None, None),
        (b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", None, None),
    ],
)  # fmt: skip
def test_version_1(line: bytes, source: object, destination: object) -> None:
    header = parse(line)
    assert (header.source, header.destination) == (source, destination)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00",
        b"PROXYTCP4 1.1.1.1 2.2.2.2 1 2\r\n",
        b"PROXY \r\nABCDEFG",
        b"PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n",
        b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2 3\r\n",
        b"PROXY TCP4  1.1.1.1 2.2.2.2 1 2\r\n",
        b"PROXY TCP4 1.1.1.256 2.2.2.2 1 2\r\n",
        b"PROXY TCP4 ::1 ::1 1 2\r\n",
        b"PROXY TCP6 1.1.1.1 2.2.2.2 1 2\r\n",
        b"PROXY TCP4 1.1.1.1 2.2.2.2 65536 2\r\n",
        b"PROXY TCP4 1.1.1.1 2.2.2.2 -1 2\r\n",
        b"PROXY TCP4 1.1.1.1 2.2.2.2 \xb2 2\r\n",
        b"PROXY UDP4 1.1.1.1 2.2.2.2 1 2\r\n",
        b"PROXY TCP4 1.1.1.1\n2.2.2.2 1 2\r\n",
        b"PROXY UNKNOWN " + b"x" * V1_BYTES_MAX,
        b"PROXY TCP4 " + b"1" * V1_BYTES_MAX,
        v2(INET + INET_PORTS, command=0x11),
        v2(INET + INET_PORTS, command=0x22),
        v2(INET + INET_PORTS, family=0x12),
        v2(INET + INET_PORTS, family=0x41),
        v2(INET),
        v2(INET6 + INET_PORTS[:3], family=0x21),
        v2(b"", length=V2_BYTES_MAX),
        v2(INET + INET_PORTS + b"\x20"),
        v2(INET + INET_PORTS + tlv(0x20, b"\x01\x00")),
        v2(INET + INET_PORTS + b"\x20\x00\x09abc"),
        v2(INET + INET_PORTS + tlv(0x20, b"\x03\0\0\0\0" + tlv(0x22, b"\xff"))),
        v2(INET + INET_PORTS + tlv(0x20, b"\x03\0\0\0\0" + b"\x22\x01\x00a")),
    ],
)
def test_not_a_header(data: bytes) -> None:
    with pytest.raises(ProxyHeaderError):
        parse(data, b"")


def test_longest_line_of_version_1_fits() -> None:
    line = b"PROXY UNKNOWN " + b"x" * (V1_BYTES_MAX - 16) + b"\r\n"
    assert len(line) == V1_BYTES_MAX
    assert parse(line).source is None


def test_version_2_inet() -> None:
    header = parse(v2(INET + INET_PORTS))
    assert header.source == ("192.0.2.7", 40_000)
    assert header.destination == ("198.51.100.1", 1883)
    assert header.common_name is None


def test_version_2_inet6() -> None:
    header = parse(v2(INET6 + INET_PORTS, family=0x21))
    assert header.source == ("2001:db8::7", 40_000)
    assert header.destination == ("2001:db8::1", 1883)


def test_version_2_unix() -> None:
    header = parse(v2(b"/run/a".ljust(108, b"\0") + b"/run/b".ljust(108, b"\0"), family=0x31))
    assert (header.source, header.destination) == (("/run/a", 0), ("/run/b", 0))


@pytest.mark.parametrize(
    "data",
    [v2(b"", command=0x20, family=0), v2(INET + INET_PORTS, command=0x20), v2(b"whatever", command=0x21, family=0)],
    ids=["local", "local with addresses", "unspecified"],
)
def test_version_2_where_the_proxy_speaks_for_itself(data: bytes) -> None:
    assert parse(data).source is None


@pytest.mark.parametrize(
    ("client", "verify", "expected"),
    [(0x03, 0, "device-7"), (0x05, 0, "device-7"), (0x01, 0, None), (0x03, 1, None)],
    ids=["shown", "resumed", "no certificate", "not verified"],
)
def test_common_name_counts_only_when_verified(client: int, verify: int, expected: str | None) -> None:
    inner = tlv(0x21, b"TLSv1.3") + tlv(0x22, b"device-7")
    fields = tlv(0x02, b"mqtt.example") + tlv(0x20, struct.pack("!BI", client, verify) + inner) + tlv(0x04, b"\0")
    assert parse(v2(INET + INET_PORTS + fields)).common_name == expected


def test_longest_header_of_version_2_fits() -> None:
    body = INET + INET_PORTS
    padding = tlv(0x04, b"\0" * (V2_BYTES_MAX - 16 - len(body) - 3))
    assert len(v2(body + padding)) == V2_BYTES_MAX
    assert parse(v2(body + padding)).source == ("192.0.2.7", 40_000)


@given(
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=60).map(SIGNATURE.__add__),
        st.binary(max_size=60).map(b"PROXY ".__add__),
    )
)
def test_any_bytes_end_in_a_header_or_an_error(data: bytes) -> None:  # fmt: skip
    parser, at = ProxyHeaderParser(), 0
    while at < len(data):
        assert 0 < parser.wanted <= V2_BYTES_MAX
        piece = data[at : at + parser.wanted]
        at += len(piece)
        try:
            if parser.feed(piece) is not None:
                return
        except ProxyHeaderError:
            return


@given(st.data())
def test_pieces_do_not_matter(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from([v2(INET + INET_PORTS), b"PROXY TCP6 2001:db8::7 ::1 40000 1883\r\n"]))
    parser, at, header = ProxyHeaderParser(), 0, None
    while header is None:
        size = data.draw(st.integers(1, parser.wanted))
        header = parser.feed(whole[at : at + size])
        at += size
    assert at == len(whole)
    assert header.source is not None
    assert header.source[1] == 40_000
