"""Hypothesis strategies for every packet, as a sender that keeps the rules would make it."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from brookmq.mqtt import packets as p
from brookmq.mqtt.packet_types import WILL
from brookmq.mqtt.properties import Properties
from brookmq.mqtt.property_table import BINARY, FLAG, PROPERTIES, STRING, STRING_PAIR, UINT16, UINT32, Property
from brookmq.mqtt.reasons import ALLOWED

VERSIONS = st.sampled_from([3, 4, 5])
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
BYTES = st.binary(max_size=40)
UINT16S = st.integers(0, 0xFFFF)
PACKET_IDS = st.integers(1, 0xFFFF)
QOS = st.integers(0, 2)
TOPICS = st.text(st.characters(codec="utf-8", exclude_characters="\0+#"), min_size=1, max_size=40).map(str.encode)
FILTERS = st.lists(st.sampled_from(["a", "b", "+", "", "é", "$x"]), min_size=1, max_size=5).map("/".join).filter(len)


def _value(row: Property, packet_type: int) -> SearchStrategy[object]:
    lowest = 0 if row.zero else 1
    if row.name == "response_topic":
        return TOPICS.map(bytes.decode)
    if row.name == "subscription_identifiers":
        most = 4 if packet_type in row.repeats else 1
        return st.lists(st.integers(1, 268_435_455), min_size=1, max_size=most).map(tuple)
    return {
        FLAG: st.integers(0, 1),
        UINT16: st.integers(lowest, 0xFFFF),
        UINT32: st.integers(lowest, 0xFFFF_FFFF),
        STRING: TEXT,
        BINARY: BYTES,
        STRING_PAIR: st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4).map(tuple),
    }[row.type]


@st.composite
def properties(draw: st.DrawFn, packet_type: int, version: int = 5) -> Properties:
    """Any set that may stand in this packet; an empty one before MQTT 5."""
    result = Properties()
    if version == 5:
        rows = [row for row in PROPERTIES.values() if packet_type in row.packets]
        for row in draw(st.lists(st.sampled_from(rows), unique_by=lambda row: row.name, max_size=len(rows))):
            setattr(result, row.name, draw(_value(row, packet_type)))
    if packet_type in {p.CONNECT, p.AUTH} and result.authentication_data is not None:
        result.authentication_method = draw(TEXT)
    return result


def _reason(packet_type: int, version: int) -> SearchStrategy[int]:
    return st.sampled_from(sorted(ALLOWED[packet_type])) if version == 5 else st.just(0)


@st.composite
def wills(draw: st.DrawFn, version: int) -> p.Will:
    own = draw(properties(WILL, version))
    return p.Will(draw(TOPICS), draw(BYTES), draw(QOS), draw(st.booleans()), own, own.will_delay_interval or 0)


@st.composite
def connects(draw: st.DrawFn, version: int) -> p.Connect:
    username = draw(st.none() | TEXT)
    password = draw(st.none() | BYTES) if username is not None or version == 5 else None
    return p.Connect(
        version,
        draw(TEXT),
        draw(st.booleans()),
        draw(UINT16S),
        username,
        password,
        draw(st.none() | wills(version)),
        draw(properties(p.CONNECT, version)),
    )


@st.composite
def connacks(draw: st.DrawFn, version: int) -> p.Connack:
    reason = draw(_reason(p.CONNACK, 5) if version == 5 else st.sampled_from([0, 0x84, 0x85, 0x86, 0x87, 0x88]))
    present = version != 3 and reason == 0 and draw(st.booleans())
    return p.Connack(present, reason, draw(properties(p.CONNACK, version)))


@st.composite
def publishes(draw: st.DrawFn, version: int) -> p.Publish:
    qos = draw(QOS)
    own = draw(properties(p.PUBLISH, version))
    topics = TOPICS if own.topic_alias is None else TOPICS | st.just(b"")
    return p.Publish(
        draw(topics),
        draw(st.binary(max_size=300)),
        qos,
        draw(st.booleans()),
        qos > 0 and draw(st.booleans()),
        draw(PACKET_IDS) if qos else 0,
        own,
    )


@st.composite
def acks(draw: st.DrawFn, version: int) -> p.Ack:
    packet_type = draw(st.sampled_from([p.PUBACK, p.PUBREC, p.PUBREL, p.PUBCOMP]))
    reason = draw(_reason(packet_type, version))
    return p.Ack(packet_type, draw(PACKET_IDS), reason, draw(properties(packet_type, version)))


@st.composite
def subscription_requests(draw: st.DrawFn, version: int) -> p.SubscriptionRequest:
    if version != 5:
        return p.SubscriptionRequest(draw(FILTERS), draw(QOS))
    flags = st.booleans()
    return p.SubscriptionRequest(draw(FILTERS), draw(QOS), draw(flags), draw(flags), draw(st.integers(0, 2)))


@st.composite
def subscribes(draw: st.DrawFn, version: int) -> p.Subscribe:
    requests = draw(st.lists(subscription_requests(version), min_size=1, max_size=4))
    return p.Subscribe(draw(PACKET_IDS), requests, draw(properties(p.SUBSCRIBE, version)))


@st.composite
def subacks(draw: st.DrawFn, version: int) -> p.Suback:
    codes = sorted(ALLOWED[p.SUBACK]) if version == 5 else [0, 1, 2, 0x80]
    reasons = draw(st.lists(st.sampled_from(codes), min_size=1, max_size=4))
    return p.Suback(draw(PACKET_IDS), reasons, draw(properties(p.SUBACK, version)))


@st.composite
def unsubscribes(draw: st.DrawFn, version: int) -> p.Unsubscribe:
    filters = draw(st.lists(FILTERS, min_size=1, max_size=4))
    return p.Unsubscribe(draw(PACKET_IDS), filters, draw(properties(p.UNSUBSCRIBE, version)))


@st.composite
def unsubacks(draw: st.DrawFn, version: int) -> p.Unsuback:
    reasons = draw(st.lists(_reason(p.UNSUBACK, 5), min_size=1, max_size=4)) if version == 5 else []
    return p.Unsuback(draw(PACKET_IDS), reasons, draw(properties(p.UNSUBACK, version)))


@st.composite
def disconnects(draw: st.DrawFn, version: int) -> p.Disconnect:
    return p.Disconnect(draw(_reason(p.DISCONNECT, version)), draw(properties(p.DISCONNECT, version)))


@st.composite
def auths(draw: st.DrawFn) -> p.Auth:
    own = draw(properties(p.AUTH))
    own.authentication_method = draw(TEXT)
    return p.Auth(draw(_reason(p.AUTH, 5)), own)


@st.composite
def packets(draw: st.DrawFn) -> tuple[p.Packet, int]:
    """Any packet, with the version of the connection that it goes over."""
    version = draw(VERSIONS)
    kinds: list[SearchStrategy[p.Packet]] = [
        connects(version),
        connacks(version),
        publishes(version),
        acks(version),
        subscribes(version),
        subacks(version),
        unsubscribes(version),
        unsubacks(version),
        disconnects(version),
        st.builds(p.Pingreq),
        st.builds(p.Pingresp),
    ]
    if version == 5:
        kinds.append(auths())
    return draw(st.one_of(kinds)), version
