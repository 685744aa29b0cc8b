"""The one catalogue of packet bytes: valid and broken packets of every type and version, by name.

The codec, the channel, the fuzz target and the load tool use the same entries. The bytes are put together by hand and
not by BrookMQ's own encoder, so that the two check each other.

``CATALOGUE`` has whole packets that can be cut out of a stream. ``UNFRAMEABLE`` has the beginnings of streams in which
not even the length of the first packet can be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

MALFORMED: Final = 0x81
PROTOCOL_ERROR: Final = 0x82
UNSUPPORTED_VERSION: Final = 0x84
TOPIC_NAME_INVALID: Final = 0x90
TOPIC_ALIAS_INVALID: Final = 0x94

CLIENT: Final = "client"
SERVER: Final = "server"
EITHER: Final = "either"


class Entry(NamedTuple):
    """One packet. ``sender`` is who may send a packet of this type, ``reason`` the code that decoding it ends
    in (None: it is valid), ``canonical`` whether encoding what was decoded gives the same bytes again."""

    name: str
    data: bytes
    version: int
    sender: str
    reason: int | None = None
    canonical: bool = True

    @property
    def first_byte(self) -> int:
        return self.data[0]

    @property
    def body(self) -> bytes:
        """What follows the fixed header."""
        at = 1
        while self.data[at] & 0x80:
            at += 1
        return self.data[at + 1 :]


def length(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return out + bytes((value,))


def packet(first_byte: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return bytes((first_byte,)) + length(len(body)) + body


def number(value: int, size: int = 2) -> bytes:
    return value.to_bytes(size, "big")


def text(content: str | bytes) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return number(len(data)) + data


def properties(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return length(len(body)) + body


def user(name: str, value: str) -> bytes:
    return b"\x26" + text(name) + text(value)


NONE: Final = b"\x00"  # no properties
ID: Final = number(10)
PROTOCOL: Final = {3: text("MQIsdp") + b"\x03", 4: text("MQTT") + b"\x04", 5: text("MQTT") + b"\x05"}


def connect(version: int, flags: int, *payload: bytes, first_byte: int = 0x10, props: bytes = NONE) -> bytes:
    """A CONNECT; ``payload`` begins with the client identifier."""
    return packet(
        first_byte, PROTOCOL[version], bytes((flags,)), number(60), props if version == 5 else b"", b"".join(payload)
    )


_ALL: Final = (3, 4, 5)
_PROPS: Final = {3: b"", 4: b"", 5: NONE}

_BAD_STRINGS: Final = {
    "U+0000": b"a\x00b",  # [MQTT-1.5.4-2]
    "a surrogate": b"a\xed\xa0\x80",  # [MQTT-1.5.4-1]
    "an overlong form": b"\xc0\xaf",
    "a lone continuation byte": b"a\x80",
    "a cut sequence": b"a\xe2\x82",
    "beyond U+10FFFF": b"\xf4\x90\x80\x80",
    "Latin-1": b"caf\xe9",
}

_PUBLISH_PROPERTIES: Final = properties(
    b"\x01\x01",
    b"\x03" + text("text/plain"),
    b"\x08" + text("answer/here"),
    b"\x09" + text(b"\x00\xff"),
    user("a", "1"),
    user("b", "2"),
    user("a", "1"),
    b"\x02" + number(30, 4),
)

_CONNECT_PROPERTIES: Final = properties(
    user("os", "linux"),
    b"\x11" + number(3600, 4),
    b"\x15" + text("SCRAM-SHA-256"),
    b"\x16" + text(b"n,,n=user"),
    b"\x17\x00",
    b"\x19\x01",
    b"\x21" + number(20),
    b"\x22" + number(5),
    b"\x27" + number(65_536, 4),
)

_WILL_PROPERTIES: Final = properties(b"\x01\x01", b"\x03" + text("text/plain"), user("w", "x"), b"\x18" + number(7, 4))

_CONNACK_PROPERTIES: Final = properties(
    user("node", "one"),
    b"\x11" + number(60, 4),
    b"\x12" + text("assigned-1"),
    b"\x13" + number(30),
    b"\x15" + text("SCRAM-SHA-256"),
    b"\x16" + text(b"v=1"),
    b"\x1a" + text("answers/1"),
    b"\x1c" + text("other.example:1883"),
    b"\x1f" + text("welcome"),
    b"\x21" + number(100),
    b"\x22" + number(16),
    b"\x24\x01",
    b"\x25\x01",
    b"\x27" + number(1_048_576, 4),
    b"\x28\x01",
    b"\x29\x01",
    b"\x2a\x01",
)


def _valid_connect() -> Iterator[Entry]:
    client_id = text("client-1")
    will = _PROPS  # the will's properties, in front of its topic
    for version in _ALL:
        entries = {
            "CONNECT": connect(version, 0x02, client_id),
            "CONNECT without clean start": connect(version, 0x00, client_id),
            "CONNECT without client identifier": connect(version, 0x02, text("")),
            "CONNECT with user name": connect(version, 0x82, client_id, text("user")),
            "CONNECT with user name and password": connect(version, 0xC2, client_id, text("user"), text(b"\x00\xff")),
            "CONNECT with will": connect(version, 0x06, client_id, will[version], text("w/t"), text(b"gone")),
            "CONNECT with retained QoS 2 will": connect(version, 0x36, client_id, will[version], text("w"), text(b"")),
            "CONNECT with everything": connect(
                version, 0xEE, client_id, will[version], text("w"), text(b"x"), text("user"), text(b"secret")
            ),
            "CONNECT with a long client identifier": connect(version, 0x02, text("c" * 300)),
            "CONNECT with U+FEFF": connect(version, 0x02, text("\ufeffclient")),  # [MQTT-1.5.4-3]
        }
        for name, data in entries.items():
            yield Entry(f"{name}, version {version}", data, version, CLIENT)
    yield Entry("CONNECT with properties", connect(5, 0x02, client_id, props=_CONNECT_PROPERTIES), 5, CLIENT)
    yield Entry(
        "CONNECT with will properties", connect(5, 0x0E, client_id, _WILL_PROPERTIES, text("w"), text(b"x")), 5, CLIENT
    )
    yield Entry("CONNECT with password alone", connect(5, 0x42, client_id, text(b"token")), 5, CLIENT)
    yield Entry("CONNECT 3.1 that ends before its user name", connect(3, 0xC2, client_id), 3, CLIENT, canonical=False)
    yield Entry(
        "CONNECT 3.1 that ends before its password", connect(3, 0xC2, client_id, text("u")), 3, CLIENT, canonical=False
    )
    yield Entry(
        "CONNECT 3.1 with unused flags", connect(3, 0x03, client_id, first_byte=0x1F), 3, CLIENT, canonical=False
    )


def _broken_connect() -> Iterator[Entry]:
    client_id = text("client-1")
    rest = b"\x02" + number(60)

    def raw(name: str, protocol: bytes, reason: int) -> Entry:
        return Entry(name, packet(0x10, protocol, rest, NONE, client_id), 5, CLIENT, reason)

    yield raw("CONNECT with protocol version 6", text("MQTT") + b"\x06", UNSUPPORTED_VERSION)
    yield raw("CONNECT with protocol version 0", text("MQTT") + b"\x00", UNSUPPORTED_VERSION)
    yield raw("CONNECT with the bridge bit", text("MQTT") + b"\x84", UNSUPPORTED_VERSION)
    yield raw("CONNECT MQTT with version 3", text("MQTT") + b"\x03", UNSUPPORTED_VERSION)
    yield raw("CONNECT MQIsdp with version 4", text("MQIsdp") + b"\x04", UNSUPPORTED_VERSION)
    yield raw("CONNECT with another protocol name", text("mqtt") + b"\x05", UNSUPPORTED_VERSION)
    yield raw("CONNECT with an empty protocol name", text("") + b"\x05", UNSUPPORTED_VERSION)
    yield raw("CONNECT with a protocol name beyond its end", number(500) + b"MQTT\x05", MALFORMED)
    yield Entry("CONNECT without body", packet(0x10), 5, CLIENT, MALFORMED)
    yield Entry("CONNECT that ends before the flags", packet(0x10, PROTOCOL[5]), 5, CLIENT, MALFORMED)
    yield Entry("CONNECT that ends in the keep alive", packet(0x10, PROTOCOL[5], b"\x02\x00"), 5, CLIENT, MALFORMED)
    for version in (4, 5):
        will = b"" if version == 4 else NONE
        broken = {
            "CONNECT with the reserved flag": connect(version, 0x03, client_id),  # [MQTT-3.1.2-3]
            "CONNECT with fixed header flags": connect(version, 0x02, client_id, first_byte=0x11),  # [MQTT-2.1.3-1]
            "CONNECT with will QoS and no will": connect(version, 0x0A, client_id),  # [MQTT-3.1.2-11]
            "CONNECT with will retain and no will": connect(version, 0x22, client_id),  # [MQTT-3.1.2-13]
            "CONNECT with will QoS 3": connect(version, 0x1E, client_id, will, text("w"), text(b"")),  # [MQTT-3.1.2-12]
            "CONNECT without its client identifier": connect(version, 0x02),  # [MQTT-3.1.3-3]
            "CONNECT without its will": connect(version, 0x06, client_id),  # [MQTT-3.1.2-9]
            "CONNECT without its will payload": connect(version, 0x06, client_id, will, text("w")),
            "CONNECT without its user name": connect(version, 0x82, client_id),  # [MQTT-3.1.2-17]
            "CONNECT without its password": connect(version, 0xC2, client_id, text("u")),  # [MQTT-3.1.2-19]
            "CONNECT with a user name and no flag": connect(version, 0x02, client_id, text("u")),  # [MQTT-3.1.2-16]
            "CONNECT with trailing bytes": connect(version, 0x02, client_id, b"\x00"),
            "CONNECT with a client identifier beyond its end": connect(version, 0x02, number(9) + b"client"),
        }
        for name, data in broken.items():
            yield Entry(f"{name}, version {version}", data, version, CLIENT, MALFORMED)
        for what, data in _BAD_STRINGS.items():
            yield Entry(
                f"CONNECT with {what} in the client identifier, version {version}",
                connect(version, 0x02, text(data)),
                version,
                CLIENT,
                MALFORMED,
            )
        yield Entry(
            f"CONNECT with U+0000 in the user name, version {version}",
            connect(version, 0x82, client_id, text(b"\x00")),
            version,
            CLIENT,
            MALFORMED,
        )
        yield Entry(
            f"CONNECT with Latin-1 in the will topic, version {version}",
            connect(version, 0x06, client_id, will, text(b"caf\xe9"), text(b"")),
            version,
            CLIENT,
            MALFORMED,
        )
        for what, topic in {"wildcards in": "w/#", "an empty": ""}.items():
            yield Entry(
                f"CONNECT with {what} will topic, version {version}",
                connect(version, 0x06, client_id, will, text(topic), text(b"")),
                version,
                CLIENT,
                TOPIC_NAME_INVALID,
            )
    yield Entry("CONNECT 3.1.1 with password alone", connect(4, 0x42, client_id, text(b"p")), 4, CLIENT, MALFORMED)
    yield Entry("CONNECT 3.1 with password alone", connect(3, 0x42, client_id, text(b"p")), 3, CLIENT, MALFORMED)
    yield Entry("CONNECT 3.1 with trailing bytes", connect(3, 0x02, client_id, b"\x00"), 3, CLIENT, MALFORMED)


def _broken_connect_properties() -> Iterator[Entry]:
    broken: dict[str, tuple[bytes, int]] = {
        "session expiry twice": (properties((b"\x11" + number(1, 4)) * 2), PROTOCOL_ERROR),
        "receive maximum twice": (properties((b"\x21" + number(1)) * 2), PROTOCOL_ERROR),
        "maximum packet size twice": (properties((b"\x27" + number(1, 4)) * 2), PROTOCOL_ERROR),
        "topic alias maximum twice": (properties((b"\x22" + number(1)) * 2), PROTOCOL_ERROR),
        "receive maximum 0": (properties(b"\x21" + number(0)), PROTOCOL_ERROR),
        "maximum packet size 0": (properties(b"\x27" + number(0, 4)), PROTOCOL_ERROR),
        "request problem information 2": (properties(b"\x17\x02"), PROTOCOL_ERROR),
        "request response information 255": (properties(b"\x19\xff"), PROTOCOL_ERROR),
        "authentication data alone": (properties(b"\x16" + text(b"x")), PROTOCOL_ERROR),
        "a topic alias": (properties(b"\x23" + number(1)), MALFORMED),
        "a will delay": (properties(b"\x18" + number(1, 4)), MALFORMED),
        "a server keep alive": (properties(b"\x13" + number(1)), MALFORMED),
        "an unknown property": (properties(b"\x7f\x00"), MALFORMED),
        "property 0": (properties(b"\x00"), MALFORMED),
        "a property identifier of two bytes": (properties(b"\x91\x00" + number(1, 4)), MALFORMED),
        "a cut session expiry": (properties(b"\x11\x00\x00"), MALFORMED),
        "a cut user property": (properties(b"\x26" + text("a")), MALFORMED),
        "U+0000 in a user property": (properties(b"\x26" + text("a") + text(b"\x00")), MALFORMED),
        "a property length beyond its end": (b"\x7f", MALFORMED),
        "a property length of five bytes": (b"\x80\x80\x80\x80\x01", MALFORMED),
        "a property length longer than needed": (b"\x80\x00", MALFORMED),  # [MQTT-1.5.5-1]
    }
    for name, (props, reason) in broken.items():
        yield Entry(f"CONNECT with {name}", connect(5, 0x02, text("c"), props=props), 5, CLIENT, reason)
    broken_will = {
        "a session expiry in the will": (properties(b"\x11" + number(1, 4)), MALFORMED),
        "a topic alias in the will": (properties(b"\x23" + number(1)), MALFORMED),
        "will delay twice": (properties((b"\x18" + number(1, 4)) * 2), PROTOCOL_ERROR),
        "will payload format 2": (properties(b"\x01\x02"), PROTOCOL_ERROR),
        "a response topic with wildcards in the will": (properties(b"\x08" + text("a/+")), PROTOCOL_ERROR),
    }
    for name, (props, reason) in broken_will.items():
        data = connect(5, 0x06, text("c"), props, text("w"), text(b""))
        yield Entry(f"CONNECT with {name}", data, 5, CLIENT, reason)


def _connack() -> Iterator[Entry]:
    for version in _ALL:
        yield Entry(f"CONNACK, version {version}", packet(0x20, b"\x00\x00", _PROPS[version]), version, SERVER)
    yield Entry("CONNACK 3.1.1 with session", packet(0x20, b"\x01\x00"), 4, SERVER)
    yield Entry("CONNACK 3.1.1 not authorized", packet(0x20, b"\x00\x05"), 4, SERVER)
    yield Entry("CONNACK 5 with session", packet(0x20, b"\x01\x00", NONE), 5, SERVER)
    yield Entry("CONNACK 5 banned", packet(0x20, b"\x00\x8a", NONE), 5, SERVER)
    yield Entry("CONNACK 5 with properties", packet(0x20, b"\x00\x00", _CONNACK_PROPERTIES), 5, SERVER)
    yield Entry("CONNACK with reserved flags", packet(0x20, b"\x02\x00", NONE), 5, SERVER, MALFORMED)
    yield Entry("CONNACK with fixed header flags", packet(0x28, b"\x00\x00", NONE), 5, SERVER, MALFORMED)
    yield Entry("CONNACK without properties", packet(0x20, b"\x00\x00"), 5, SERVER, MALFORMED)
    yield Entry("CONNACK with trailing bytes", packet(0x20, b"\x00\x00", NONE, b"\x00"), 5, SERVER, MALFORMED)
    yield Entry("CONNACK with a reason of DISCONNECT", packet(0x20, b"\x00\x8e", NONE), 5, SERVER, PROTOCOL_ERROR)
    yield Entry("CONNACK with session in a refusal", packet(0x20, b"\x01\x87", NONE), 5, SERVER, PROTOCOL_ERROR)
    yield Entry("CONNACK 3.1.1 with return code 6", packet(0x20, b"\x00\x06"), 4, SERVER, PROTOCOL_ERROR)
    yield Entry(
        "CONNACK with maximum QoS 2", packet(0x20, b"\x00\x00", properties(b"\x24\x02")), 5, SERVER, PROTOCOL_ERROR
    )


def _publish() -> Iterator[Entry]:
    for version in _ALL:
        props = _PROPS[version]
        entries = {
            "PUBLISH": packet(0x30, text("a/b"), props, b"hello"),
            "PUBLISH QoS 1": packet(0x32, text("a/b"), ID, props, b"hello"),
            "PUBLISH QoS 2": packet(0x34, text("a/b"), ID, props, b"hello"),
            "PUBLISH QoS 1 again": packet(0x3A, text("a/b"), ID, props, b"hello"),
            "PUBLISH retained": packet(0x31, text("a/b"), props, b"hello"),
            "PUBLISH retained and empty": packet(0x31, text("a/b"), props),
            "PUBLISH of one level": packet(0x30, text("a"), props, b"x"),
            "PUBLISH with empty levels": packet(0x30, text("/a//b/"), props, b"x"),
            "PUBLISH beyond ASCII": packet(0x30, text("prüfung/日本"), props, "ü".encode()),
            "PUBLISH to a $ topic": packet(0x30, text("$own/topic"), props, b"x"),
            "PUBLISH of 200 bytes": packet(0x30, text("a/b"), props, b"x" * 200),
            "PUBLISH of 20,000 bytes": packet(0x32, text("a/b"), ID, props, b"x" * 20_000),
        }
        for name, data in entries.items():
            yield Entry(f"{name}, version {version}", data, version, EITHER)
    yield Entry("PUBLISH with properties", packet(0x32, text("a/b"), ID, _PUBLISH_PROPERTIES, b"hello"), 5, EITHER)
    yield Entry("PUBLISH with topic alias", packet(0x30, text("a/b"), properties(b"\x23\x00\x01"), b"x"), 5, EITHER)
    yield Entry("PUBLISH by topic alias", packet(0x30, text(""), properties(b"\x23\x00\x01"), b"x"), 5, EITHER)
    yield Entry(
        "PUBLISH with subscription identifiers",
        packet(0x30, text("a/b"), properties(b"\x0b\x01", b"\x0b\x80\x01", b"\x0b\xff\xff\xff\x7f"), b"x"),
        5,
        SERVER,
    )
    yield Entry("PUBLISH 3.1 with DUP at QoS 0", packet(0x38, text("a"), b"x"), 3, EITHER)


def _broken_publish() -> Iterator[Entry]:
    for version in (4, 5):
        props = _PROPS[version]
        broken = {
            "PUBLISH QoS 3": (packet(0x36, text("a"), ID, props, b"x"), MALFORMED),  # [MQTT-3.3.1-4]
            "PUBLISH with DUP at QoS 0": (packet(0x38, text("a"), props, b"x"), MALFORMED),  # [MQTT-3.3.1-2]
            "PUBLISH without body": (packet(0x30), MALFORMED),
            "PUBLISH with a topic beyond its end": (packet(0x30, number(9) + b"a"), MALFORMED),
            "PUBLISH without its packet identifier": (packet(0x32, text("a"), b"\x00"), MALFORMED),
            "PUBLISH with packet identifier 0": (packet(0x32, text("a"), number(0), props), PROTOCOL_ERROR),
            "PUBLISH to #": (packet(0x30, text("a/#"), props, b"x"), TOPIC_NAME_INVALID),  # [MQTT-3.3.2-2]
            "PUBLISH to +": (packet(0x30, text("a/+/b"), props, b"x"), TOPIC_NAME_INVALID),
        }
        for name, (data, reason) in broken.items():
            yield Entry(f"{name}, version {version}", data, version, EITHER, reason)
        for what, topic in _BAD_STRINGS.items():
            yield Entry(
                f"PUBLISH with {what} in the topic, version {version}",
                packet(0x30, text(topic), props, b"x"),
                version,
                EITHER,
                MALFORMED,
            )
    yield Entry("PUBLISH 3.1.1 without topic", packet(0x30, text(""), b"x"), 4, EITHER, TOPIC_NAME_INVALID)
    yield Entry("PUBLISH 5 without topic and alias", packet(0x30, text(""), NONE, b"x"), 5, EITHER, PROTOCOL_ERROR)
    yield Entry("PUBLISH 5 without properties", packet(0x30, text("a")), 5, EITHER, MALFORMED)
    broken_properties: dict[str, tuple[bytes, int]] = {
        "topic alias 0": (b"\x23\x00\x00", TOPIC_ALIAS_INVALID),  # [MQTT-3.3.2-8]
        "topic alias twice": (b"\x23\x00\x01" * 2, PROTOCOL_ERROR),
        "payload format 2": (b"\x01\x02", PROTOCOL_ERROR),
        "payload format twice": (b"\x01\x01" * 2, PROTOCOL_ERROR),
        "message expiry twice": ((b"\x02" + number(1, 4)) * 2, PROTOCOL_ERROR),
        "content type twice": ((b"\x03" + text("a")) * 2, PROTOCOL_ERROR),
        "correlation data twice": ((b"\x09" + text(b"a")) * 2, PROTOCOL_ERROR),
        "response topic twice": ((b"\x08" + text("a")) * 2, PROTOCOL_ERROR),
        "a response topic with wildcards": (b"\x08" + text("a/#"), PROTOCOL_ERROR),  # [MQTT-3.3.2-14]
        "an empty response topic": (b"\x08" + text(""), PROTOCOL_ERROR),
        "subscription identifier 0": (b"\x0b\x00", PROTOCOL_ERROR),
        "a subscription identifier of five bytes": (b"\x0b\x80\x80\x80\x80\x01", MALFORMED),
        "a will delay": (b"\x18" + number(1, 4), MALFORMED),
        "a session expiry": (b"\x11" + number(1, 4), MALFORMED),
        "a reason string": (b"\x1f" + text("a"), MALFORMED),
        "a cut message expiry": (b"\x02\x00\x00\x00", MALFORMED),
        "Latin-1 in the content type": (b"\x03" + text(b"caf\xe9"), MALFORMED),
    }
    for name, (data, reason) in broken_properties.items():
        yield Entry(f"PUBLISH with {name}", packet(0x30, text("a"), properties(data), b"x"), 5, EITHER, reason)


_ACKS: Final = {"PUBACK": (0x40, 0x10), "PUBREC": (0x50, 0x97), "PUBREL": (0x62, 0x92), "PUBCOMP": (0x70, 0x92)}


def _acks() -> Iterator[Entry]:
    for name, (first_byte, reason) in _ACKS.items():
        code = bytes((reason,))
        for version in _ALL:
            yield Entry(f"{name}, version {version}", packet(first_byte, ID), version, EITHER)
            yield Entry(
                f"{name} with packet identifier 0, version {version}",
                packet(first_byte, number(0)),
                version,
                EITHER,
                PROTOCOL_ERROR,
            )
            yield Entry(
                f"{name} of one byte, version {version}", packet(first_byte, b"\x01"), version, EITHER, MALFORMED
            )
        yield Entry(f"{name} with reason", packet(first_byte, ID, code), 5, EITHER)
        props = properties(user("a", "b"), b"\x1f" + text("why"))
        yield Entry(f"{name} with properties", packet(first_byte, ID, code, props), 5, EITHER)
        yield Entry(f"{name} with success and properties", packet(first_byte, ID, NONE, props), 5, EITHER)
        yield Entry(f"{name} with success spelled out", packet(first_byte, ID, NONE, NONE), 5, EITHER, canonical=False)
        yield Entry(f"{name} with an unknown reason", packet(first_byte, ID, b"\x7f"), 5, EITHER, PROTOCOL_ERROR)
        yield Entry(f"{name} with fixed header flags", packet(first_byte ^ 0x01, ID), 5, EITHER, MALFORMED)
        yield Entry(f"{name} 3.1.1 with a reason", packet(first_byte, ID, code), 4, EITHER, MALFORMED)
        yield Entry(f"{name} with trailing bytes", packet(first_byte, ID, code, NONE, NONE), 5, EITHER, MALFORMED)
        twice = properties((b"\x1f" + text("why")) * 2)
        yield Entry(f"{name} with two reason strings", packet(first_byte, ID, code, twice), 5, EITHER, PROTOCOL_ERROR)
    yield Entry("PUBREL 3.1 with DUP", packet(0x6A, ID), 3, EITHER, canonical=False)
    yield Entry("PUBREL without its flag", packet(0x60, ID), 4, EITHER, MALFORMED)  # [MQTT-3.6.1-1]


def _subscribe() -> Iterator[Entry]:
    for version in _ALL:
        props = _PROPS[version]
        entries = {
            "SUBSCRIBE": packet(0x82, ID, props, text("a/b"), b"\x00"),
            "SUBSCRIBE QoS 2": packet(0x82, ID, props, text("a/+/c/#"), b"\x02"),
            "SUBSCRIBE to three filters": packet(
                0x82, ID, props, text("a"), b"\x00", text("+/b"), b"\x01", text("#"), b"\x02"
            ),
            "SUBSCRIBE to a shared filter": packet(0x82, ID, props, text("$share/group/a/#"), b"\x01"),
        }
        for name, data in entries.items():
            yield Entry(f"{name}, version {version}", data, version, CLIENT)
    yield Entry("SUBSCRIBE with options", packet(0x82, ID, NONE, text("a"), b"\x2d"), 5, CLIENT)
    props = properties(user("a", "b"), b"\x0b\xff\x7f")
    yield Entry("SUBSCRIBE with properties", packet(0x82, ID, props, text("a"), b"\x01"), 5, CLIENT)
    yield Entry("SUBSCRIBE 3.1 with DUP", packet(0x8A, ID, text("a"), b"\x01"), 3, CLIENT, canonical=False)


def _broken_subscribe() -> Iterator[Entry]:
    for version in (4, 5):
        props = _PROPS[version]
        broken = {
            "SUBSCRIBE without filter": (packet(0x82, ID, props), PROTOCOL_ERROR),  # [MQTT-3.8.3-2]
            "SUBSCRIBE with packet identifier 0": (packet(0x82, number(0), props, text("a"), b"\x00"), PROTOCOL_ERROR),
            "SUBSCRIBE with QoS 3": (packet(0x82, ID, props, text("a"), b"\x03"), PROTOCOL_ERROR),
            "SUBSCRIBE without its flag": (packet(0x80, ID, props, text("a"), b"\x00"), MALFORMED),  # [MQTT-3.8.1-1]
            "SUBSCRIBE with reserved options": (packet(0x82, ID, props, text("a"), b"\x40"), MALFORMED),
            "SUBSCRIBE without its options": (packet(0x82, ID, props, text("a")), MALFORMED),
            "SUBSCRIBE with a filter beyond its end": (packet(0x82, ID, props, number(9) + b"a\x00"), MALFORMED),
            "SUBSCRIBE without body": (packet(0x82), MALFORMED),
        }
        for name, (data, reason) in broken.items():
            yield Entry(f"{name}, version {version}", data, version, CLIENT, reason)
        for what, filter_ in _BAD_STRINGS.items():
            yield Entry(
                f"SUBSCRIBE with {what} in the filter, version {version}",
                packet(0x82, ID, props, text(filter_), b"\x00"),
                version,
                CLIENT,
                MALFORMED,
            )
    yield Entry("SUBSCRIBE 3.1.1 with no local", packet(0x82, ID, text("a"), b"\x04"), 4, CLIENT, MALFORMED)
    retain_handling = packet(0x82, ID, NONE, text("a"), b"\x30")
    yield Entry("SUBSCRIBE with retain handling 3", retain_handling, 5, CLIENT, PROTOCOL_ERROR)
    no_local = packet(0x82, ID, NONE, text("$share/g/a"), b"\x04")  # [MQTT-3.8.3-4]
    yield Entry("SUBSCRIBE to a shared filter with no local", no_local, 5, CLIENT, PROTOCOL_ERROR)
    broken_properties = {
        "subscription identifier 0": (b"\x0b\x00", PROTOCOL_ERROR),
        "two subscription identifiers": (b"\x0b\x01\x0b\x02", PROTOCOL_ERROR),
        "a reason string": (b"\x1f" + text("a"), MALFORMED),
    }
    for name, (props, reason) in broken_properties.items():
        data = packet(0x82, ID, properties(props), text("a"), b"\x00")
        yield Entry(f"SUBSCRIBE with {name}", data, 5, CLIENT, reason)


def _suback() -> Iterator[Entry]:
    for version in _ALL:
        yield Entry(
            f"SUBACK, version {version}", packet(0x90, ID, _PROPS[version], b"\x00\x01\x02\x80"), version, SERVER
        )
        yield Entry(
            f"SUBACK without code, version {version}",
            packet(0x90, ID, _PROPS[version]),
            version,
            SERVER,
            PROTOCOL_ERROR,
        )
    props = properties(user("a", "b"), b"\x1f" + text("why"))
    yield Entry("SUBACK with properties", packet(0x90, ID, props, b"\x87\x8f\xa2"), 5, SERVER)
    yield Entry("SUBACK with an unknown code", packet(0x90, ID, NONE, b"\x03"), 5, SERVER, PROTOCOL_ERROR)
    yield Entry("SUBACK 3.1.1 with a code of MQTT 5", packet(0x90, ID, b"\x87"), 4, SERVER, PROTOCOL_ERROR)
    yield Entry("SUBACK with fixed header flags", packet(0x92, ID, NONE, b"\x00"), 5, SERVER, MALFORMED)


def _unsubscribe() -> Iterator[Entry]:
    for version in _ALL:
        props = _PROPS[version]
        yield Entry(f"UNSUBSCRIBE, version {version}", packet(0xA2, ID, props, text("a/b")), version, CLIENT)
        two = packet(0xA2, ID, props, text("a/b"), text("$share/g/#"))
        yield Entry(f"UNSUBSCRIBE from two filters, version {version}", two, version, CLIENT)
    for version in (4, 5):
        props = _PROPS[version]
        broken = {
            "UNSUBSCRIBE without filter": (packet(0xA2, ID, props), PROTOCOL_ERROR),  # [MQTT-3.10.3-2]
            "UNSUBSCRIBE with packet identifier 0": (packet(0xA2, number(0), props, text("a")), PROTOCOL_ERROR),
            "UNSUBSCRIBE without its flag": (packet(0xA0, ID, props, text("a")), MALFORMED),  # [MQTT-3.10.1-1]
            "UNSUBSCRIBE with U+0000": (packet(0xA2, ID, props, text(b"a\x00")), MALFORMED),
            "UNSUBSCRIBE with a filter beyond its end": (packet(0xA2, ID, props, number(9) + b"a"), MALFORMED),
        }
        for name, (data, reason) in broken.items():
            yield Entry(f"{name}, version {version}", data, version, CLIENT, reason)
    props = properties(user("a", "b"))
    yield Entry("UNSUBSCRIBE with properties", packet(0xA2, ID, props, text("a")), 5, CLIENT)
    identified = packet(0xA2, ID, properties(b"\x0b\x01"), text("a"))
    yield Entry("UNSUBSCRIBE with a subscription identifier", identified, 5, CLIENT, MALFORMED)
    yield Entry("UNSUBSCRIBE 3.1 with DUP", packet(0xAA, ID, text("a")), 3, CLIENT, canonical=False)


def _unsuback() -> Iterator[Entry]:
    for version in _ALL:
        codes = b"\x00\x11" if version == 5 else b""
        yield Entry(f"UNSUBACK, version {version}", packet(0xB0, ID, _PROPS[version], codes), version, SERVER)
    props = properties(b"\x1f" + text("why"))
    yield Entry("UNSUBACK with properties", packet(0xB0, ID, props, b"\x87"), 5, SERVER)
    yield Entry("UNSUBACK without code", packet(0xB0, ID, NONE), 5, SERVER, PROTOCOL_ERROR)
    yield Entry("UNSUBACK with a code of SUBACK", packet(0xB0, ID, NONE, b"\x01"), 5, SERVER, PROTOCOL_ERROR)
    yield Entry("UNSUBACK 3.1.1 with a code", packet(0xB0, ID, b"\x00"), 4, SERVER, MALFORMED)


def _pings() -> Iterator[Entry]:
    for name, first_byte, sender in (("PINGREQ", 0xC0, CLIENT), ("PINGRESP", 0xD0, SERVER)):
        for version in _ALL:
            yield Entry(f"{name}, version {version}", packet(first_byte), version, sender)
            yield Entry(f"{name} with a body, version {version}", packet(first_byte, b"x"), version, sender, MALFORMED)
        for version in (4, 5):
            data = packet(first_byte | 0x01)
            yield Entry(f"{name} with fixed header flags, version {version}", data, version, sender, MALFORMED)


def _disconnect() -> Iterator[Entry]:
    for version in _ALL:
        yield Entry(f"DISCONNECT, version {version}", packet(0xE0), version, EITHER)
    yield Entry("DISCONNECT with will", packet(0xE0, b"\x04"), 5, CLIENT)
    yield Entry("DISCONNECT with session expiry", packet(0xE0, b"\x00", properties(b"\x11" + number(9, 4))), 5, CLIENT)
    moved = properties(user("a", "b"), b"\x1c" + text("other.example"), b"\x1f" + text("moved"))
    yield Entry("DISCONNECT to another server", packet(0xE0, b"\x9d", moved), 5, SERVER)
    yield Entry("DISCONNECT with normal spelled out", packet(0xE0, b"\x00", NONE), 5, EITHER, canonical=False)
    yield Entry("DISCONNECT with a reason of CONNACK", packet(0xE0, b"\x84"), 5, EITHER, PROTOCOL_ERROR)
    yield Entry("DISCONNECT with an unknown reason", packet(0xE0, b"\x05"), 5, EITHER, PROTOCOL_ERROR)
    twice = properties((b"\x11" + number(9, 4)) * 2)
    yield Entry("DISCONNECT with session expiry twice", packet(0xE0, b"\x00", twice), 5, EITHER, PROTOCOL_ERROR)
    alias = properties(b"\x23\x00\x01")
    yield Entry("DISCONNECT with a topic alias", packet(0xE0, b"\x00", alias), 5, EITHER, MALFORMED)
    yield Entry("DISCONNECT with trailing bytes", packet(0xE0, b"\x00", NONE, b"x"), 5, EITHER, MALFORMED)
    yield Entry("DISCONNECT 3.1.1 with a body", packet(0xE0, b"\x00"), 4, CLIENT, MALFORMED)
    for version in (4, 5):  # [MQTT-3.14.1-1]
        yield Entry(f"DISCONNECT with fixed header flags, version {version}", packet(0xE1), version, EITHER, MALFORMED)


def _auth() -> Iterator[Entry]:
    method = b"\x15" + text("SCRAM-SHA-256")
    step = properties(user("a", "b"), method, b"\x16" + text(b"\x00\xff"), b"\x1f" + text("go on"))
    yield Entry("AUTH", packet(0xF0, b"\x18", step), 5, EITHER)
    yield Entry("AUTH again", packet(0xF0, b"\x19", properties(method)), 5, CLIENT)
    yield Entry("AUTH without body", packet(0xF0), 5, EITHER)
    yield Entry("AUTH without method", packet(0xF0, b"\x18", NONE), 5, EITHER, PROTOCOL_ERROR)
    yield Entry(
        "AUTH with data alone", packet(0xF0, b"\x18", properties(b"\x16" + text(b"x"))), 5, EITHER, PROTOCOL_ERROR
    )
    yield Entry("AUTH with method twice", packet(0xF0, b"\x18", properties(method * 2)), 5, EITHER, PROTOCOL_ERROR)
    yield Entry("AUTH with an unknown reason", packet(0xF0, b"\x1a", properties(method)), 5, EITHER, PROTOCOL_ERROR)
    yield Entry("AUTH without properties", packet(0xF0, b"\x18"), 5, EITHER, MALFORMED)
    yield Entry("AUTH with fixed header flags", packet(0xF1, b"\x18", step), 5, EITHER, MALFORMED)  # [MQTT-3.15.1-1]
    yield Entry("AUTH with trailing bytes", packet(0xF0, b"\x18", step, b"x"), 5, EITHER, MALFORMED)
    for version in (3, 4):
        yield Entry(f"AUTH in version {version}", packet(0xF0, b"\x18", step), version, EITHER, MALFORMED)
    for version in _ALL:
        yield Entry(f"packet type 0, version {version}", packet(0x00, b"x"), version, EITHER, MALFORMED)


_CHAPTERS: Final = (
    _valid_connect,
    _broken_connect,
    _broken_connect_properties,
    _connack,
    _publish,
    _broken_publish,
    _acks,
    _subscribe,
    _broken_subscribe,
    _suback,
    _unsubscribe,
    _unsuback,
    _pings,
    _disconnect,
    _auth,
)

CATALOGUE: Final[dict[str, Entry]] = {}
for _chapter in _CHAPTERS:
    for _entry in _chapter():
        if _entry.name in CATALOGUE:
            raise ValueError(f"two entries are called {_entry.name!r}")
        CATALOGUE[_entry.name] = _entry

VALID: Final = [entry for entry in CATALOGUE.values() if entry.reason is None]
BROKEN: Final = [entry for entry in CATALOGUE.values() if entry.reason is not None]

# [section 2.1.4] at most four bytes of remaining length
UNFRAMEABLE: Final[dict[str, bytes]] = {
    "remaining length of five bytes": b"\x30\x80\x80\x80\x80\x01",
    "remaining length of many bytes": b"\x10" + b"\xff" * 16,
    "remaining length of five bytes in CONNECT": b"\x10\xff\xff\xff\xff\x7f",
}


def find(sender: str, version: int) -> list[Entry]:
    """All entries, valid and broken, that this side may send on a connection of this version."""
    return [entry for entry in CATALOGUE.values() if entry.version == version and entry.sender in {sender, EITHER}]
