"""Groups for tests: by hand, and any that a publisher could make."""

from __future__ import annotations

from hypothesis import strategies as st

from brookmq.mqtt.packet_types import PUBLISH
from brookmq.mqtt.publish import encode_publish
from brookmq.store.journal.group import Group
from tests.mqtt.strategies import properties

FIELDS = (
    "packets", "count", "qos", "retain", "version5", "plain", "topic", "client_id", "username", "published_at",
    "expires_at", "captured", "kept_publisher", "origin", "filters", "first",
)  # fmt: skip

STRING_BYTES_MAX = 65_535


def facts(group: Group) -> dict[str, object]:
    """All that a group says."""
    return {field: getattr(group, field) for field in FIELDS}


def run_group(
    topic: bytes = b"a/b",
    count: int = 1,
    payload: bytes = b"payload",
    *,
    qos: int = 1,
    version5: bool = False,
    client_id: str = "client",
    published_at: float = 1000.0,
    filters: bytes = b"",
    first_id: int = 1,
) -> Group:
    """A plain run with packet ids from ``first_id`` on."""
    packets = b"".join(
        encode_publish(0x30 | qos << 1, topic, first_id + index, version5, b"", payload) for index in range(count)
    )
    return Group(
        packets, count, qos, False, version5, True, topic, client_id, None, published_at, filters=filters
    )  # fmt: skip


# A string of MQTT has 65,535 bytes: of one, two, three or four bytes a character.
_LONGEST = st.sampled_from(["x" * 65_535, "é" * 32_767, "€" * 21_845, "𝄞" * 16_383, "\ufeff" + "z" * 65_532])
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30) | _LONGEST
TOPICS = (
    st.text(st.characters(codec="utf-8", exclude_characters="\0+#"), min_size=1, max_size=30) | _LONGEST
).map(str.encode)  # fmt: skip
TIMES = st.floats(min_value=0.0, max_value=1e11, allow_nan=False)
FILTER_IDS = st.lists(st.binary(min_size=4, max_size=4), max_size=5).map(b"".join)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    """A run, or a message of the slow way with any properties."""
    topic, qos, plain = draw(TOPICS), draw(st.integers(0, 2)), draw(st.booleans())
    if plain:
        version5, retain, count = draw(st.booleans()), False, draw(st.integers(1, 5))
        encoded = b""
    else:
        version5, retain, count = True, draw(st.booleans()), 1
        encoded = draw(properties(PUBLISH)).forwardable()
    packets = b"".join(
        encode_publish(
            0x30 | qos << 1 | retain,
            topic,
            draw(st.integers(1, 0xFFFF)),
            version5,
            encoded,
            draw(st.binary(max_size=50)),
        )
        for _ in range(count)
    )
    return Group(
        packets,
        count,
        qos,
        retain,
        version5,
        plain,
        topic,
        draw(TEXT),
        draw(st.none() | TEXT),
        draw(TIMES),
        draw(st.just(0.0) | TIMES),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.binary(max_size=20)),
        draw(FILTER_IDS),
    )
