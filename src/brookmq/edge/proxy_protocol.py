"""The PROXY protocol, versions 1 and 2: who the client behind a load balancer is.

The header comes before anything else on the connection, before TLS too. The parser never asks for a byte beyond it
(``wanted``), so that whatever follows - a TLS handshake, HTTP, MQTT - begins on an untouched socket. It is pure: bytes
in, a header or an error out. On a listener with ``proxy_protocol`` the header is not optional: were it so, any client
could choose its own address.

Sections are those of the specification "The PROXY protocol, versions 1 & 2" (haproxy.org).
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterator

from brookmq.base.errors import OperationError

V1_BYTES_MAX = 107  # section 2.1: the longest possible line with its CRLF
V2_BYTES_MAX = 8_192  # room for a client certificate in the TLVs; the length field alone would allow 64 KiB
_V1_START = b"PROXY "
_V2_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
_FIRST_READ_BYTES = 12  # the signature of version 2; every header of version 1 is longer
_V2_FIXED_BYTES = 16
_V1_SPACES = 5  # "PROXY TCP4 source destination port port": what a complete line has

_COMMAND_LOCAL, _COMMAND_PROXY = 0, 1
_FAMILY_UNSPECIFIED, _FAMILY_INET, _FAMILY_INET6, _FAMILY_UNIX = 0, 1, 2, 3
_TRANSPORT_STREAM = 1

_TLV_SSL = 0x20
_TLV_SSL_COMMON_NAME = 0x22
_SSL_CLIENT_CERTIFICATE = 0x02 | 0x04  # shown on this connection, or on the session that it resumes


class ProxyHeaderError(OperationError):
    """What came is not a PROXY header, or one that we cannot accept. There is nobody to answer: close."""


class ProxyHeader:
    """What the header told. ``source`` is None when the proxy speaks for itself (LOCAL, UNKNOWN: health checks)."""

    __slots__ = ("common_name", "destination", "source")

    def __init__(
        self,
        source: tuple[str, int] | None = None,
        destination: tuple[str, int] | None = None,
        common_name: str | None = None,
    ) -> None:
        self.source = source
        self.destination = destination
        self.common_name = common_name  # of a client certificate that the proxy has verified


class ProxyHeaderParser:
    """Feed at most ``wanted`` bytes at a time until ``feed`` returns the header."""

    __slots__ = ("_data", "wanted")

    def __init__(self) -> None:
        self._data = b""
        self.wanted = _FIRST_READ_BYTES  # how many bytes may be read next without reading beyond the header

    def feed(self, data: bytes) -> ProxyHeader | None:
        """The header once it is complete, else None. Raises ProxyHeaderError as soon as it can no longer become one."""
        self._data = data = self._data + data
        if data.startswith(_V1_START[: len(data)]):
            return self._feed_v1(data)
        if data.startswith(_V2_SIGNATURE[: len(data)]):
            return self._feed_v2(data)
        raise ProxyHeaderError("the connection does not begin with a PROXY header")

    def _feed_v1(self, data: bytes) -> ProxyHeader | None:
        if data.endswith(b"\r\n"):
            return _parse_v1(data)
        if len(data) >= V1_BYTES_MAX:
            raise ProxyHeaderError(f"a PROXY line is longer than {V1_BYTES_MAX} bytes")
        if b"\n" in data or b"\r" in data[:-1]:
            raise ProxyHeaderError("a PROXY line has a line break inside")
        if len(data) < _FIRST_READ_BYTES:
            self.wanted = _FIRST_READ_BYTES - len(data)
        elif data.endswith(b"\r"):
            self.wanted = 1
        elif data.startswith(b"PROXY TCP"):
            # Each space that is still to come has a character after it, and CRLF ends the line.
            self.wanted = min(2 * max(0, _V1_SPACES - data.count(b" ")) + 2, V1_BYTES_MAX - len(data))
        else:
            self.wanted = min(2, V1_BYTES_MAX - len(data))
        return None

    def _feed_v2(self, data: bytes) -> ProxyHeader | None:
        if len(data) < _FIRST_READ_BYTES:
            self.wanted = _FIRST_READ_BYTES - len(data)
            return None
        if len(data) < _V2_FIXED_BYTES:
            self.wanted = _V2_FIXED_BYTES - len(data)
            return None
        total = _V2_FIXED_BYTES + int.from_bytes(data[14:16], "big")
        if total > V2_BYTES_MAX:
            raise ProxyHeaderError(f"a PROXY header of {total} bytes is longer than {V2_BYTES_MAX}")
        if len(data) < total:
            self.wanted = total - len(data)
            return None
        return _parse_v2(data)


def _parse_v1(line: bytes) -> ProxyHeader:
    """Section 2.1. Strict: what a sloppy sender means is a guess, and the guess is an identity."""
    fields = line[:-2].split(b" ")
    if len(fields) >= 2 and fields[1] == b"UNKNOWN":
        return ProxyHeader()  # the rest of the line is to be ignored
    if len(fields) != 6 or fields[1] not in (b"TCP4", b"TCP6"):
        raise ProxyHeaderError("a PROXY line is not of the form PROXY TCP4|TCP6 source destination port port")
    version = 4 if fields[1] == b"TCP4" else 6
    return ProxyHeader(
        (_v1_address(fields[2], version), _v1_port(fields[4])),
        (_v1_address(fields[3], version), _v1_port(fields[5])),
    )


def _v1_address(field: bytes, version: int) -> str:
    try:
        address = ipaddress.ip_address(field.decode("ascii"))
    except ValueError as error:
        raise ProxyHeaderError(f"a PROXY line has a wrong address {field!r}") from error
    if address.version != version:
        raise ProxyHeaderError(f"a PROXY line has the address {field!r} of another family")
    return str(address)


def _v1_port(field: bytes) -> int:
    if not field.isdigit() or len(field) > 5 or int(field) > 65_535:
        raise ProxyHeaderError(f"a PROXY line has a wrong port {field!r}")
    return int(field)


def _parse_v2(data: bytes) -> ProxyHeader:
    """Section 2.2."""
    version, command = data[12] >> 4, data[12] & 0x0F
    if version != 2:
        raise ProxyHeaderError(f"a PROXY header has the version {version}")
    if command == _COMMAND_LOCAL:
        return ProxyHeader()  # the proxy's own connection: addresses and TLVs are to be ignored
    if command != _COMMAND_PROXY:
        raise ProxyHeaderError(f"a PROXY header has the unknown command {command}")
    family, transport = data[13] >> 4, data[13] & 0x0F
    if family == _FAMILY_UNSPECIFIED:
        return ProxyHeader()
    if transport != _TRANSPORT_STREAM:
        raise ProxyHeaderError("a PROXY header is not about a stream")
    source, destination, tlvs_at = _v2_addresses(data, family)
    return ProxyHeader(source, destination, _v2_common_name(data[tlvs_at:]))


def _v2_addresses(data: bytes, family: int) -> tuple[tuple[str, int], tuple[str, int], int]:
    at = _V2_FIXED_BYTES
    size = {_FAMILY_INET: 12, _FAMILY_INET6: 36, _FAMILY_UNIX: 216}.get(family)
    if size is None:
        raise ProxyHeaderError(f"a PROXY header has the unknown address family {family}")
    if len(data) < at + size:
        raise ProxyHeaderError("a PROXY header is too short for its addresses")
    if family == _FAMILY_UNIX:
        source_path, destination_path = (data[p : p + 108].split(b"\0", 1)[0] for p in (at, at + 108))
        return (_unix_name(source_path), 0), (_unix_name(destination_path), 0), at + size
    width = 4 if family == _FAMILY_INET else 16
    domain = socket.AF_INET if family == _FAMILY_INET else socket.AF_INET6
    source_port, destination_port = struct.unpack_from("!HH", data, at + 2 * width)
    source = socket.inet_ntop(domain, data[at : at + width])
    destination = socket.inet_ntop(domain, data[at + width : at + 2 * width])
    return (source, source_port), (destination, destination_port), at + size


def _unix_name(path: bytes) -> str:
    return path.decode("utf-8", "replace") or "unix"


def _v2_common_name(tlvs: bytes) -> str | None:
    """The subject's common name, when the proxy ended TLS, saw a client certificate and found it good (2.2.5)."""
    for kind, value in _tlvs(tlvs):
        if kind != _TLV_SSL:
            continue
        if len(value) < 5:
            raise ProxyHeaderError("a PROXY header has a short TLS field")
        verified = int.from_bytes(value[1:5], "big") == 0
        if not verified or not value[0] & _SSL_CLIENT_CERTIFICATE:
            return None
        for inner_kind, inner_value in _tlvs(value[5:]):
            if inner_kind == _TLV_SSL_COMMON_NAME:
                try:
                    return inner_value.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise ProxyHeaderError("a PROXY header has a common name that is not UTF-8") from error
    return None


def _tlvs(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        if len(data) - at < 3:
            raise ProxyHeaderError("a PROXY header has a broken field at its end")
        size = int.from_bytes(data[at + 1 : at + 3], "big")
        if at + 3 + size > len(data):
            raise ProxyHeaderError("a PROXY header has a field that is longer than the header")
        yield data[at], data[at + 3 : at + 3 + size]
        at += 3 + size
