"""The table of reason codes, and how MQTT 3 clients are told. [section 2.4]"""

from __future__ import annotations

import pytest

from brookmq.mqtt import reasons
from brookmq.mqtt.packet_types import CONNACK, DISCONNECT, PACKET_NAMES, PUBACK, PUBREL, SUBACK, UNSUBACK
from brookmq.mqtt.reasons import ALLOWED, REASONS, connack_v3, name_of, reason_of_connack_v3


def constants() -> dict[str, int]:
    numbers = {name: value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, int)}
    return {name: value for name, value in numbers.items() if name not in PACKET_NAMES and not name.startswith("V3_")}


def test_every_code_has_a_constant_named_as_in_the_specification() -> None:
    for code, row in REASONS.items():
        spelled = row.name.upper().replace(" ", "_").replace("-", "_")
        assert constants()[spelled] == code
    assert set(constants().values()) == set(REASONS)


def test_the_table_counts() -> None:
    """How many codes each packet may carry, counted in the tables of chapter 3. For DISCONNECT table 2-6 has one more
    than section 3.14.2.1: bad authentication method, for when a client authenticates again."""
    assert len(REASONS) == 43
    counts = {CONNACK: 22, PUBACK: 9, PUBREL: 2, SUBACK: 12, UNSUBACK: 7, DISCONNECT: 30}
    assert {packet_type: len(ALLOWED[packet_type]) for packet_type in counts} == counts


def test_names() -> None:
    assert name_of(0x8E) == "Session taken over"
    assert name_of(0xEE) == "0xEE"


@pytest.mark.parametrize(
    ("reason", "code"),
    [(0x00, 0), (0x84, 1), (0x85, 2), (0x88, 3), (0x86, 4), (0x8C, 4), (0x87, 5), (0x8A, 5), (0x89, 3), (0x9F, 3)],
)
def test_return_codes_of_mqtt_3(reason: int, code: int) -> None:
    assert connack_v3(reason) == code


def test_every_reason_has_a_return_code_and_only_success_is_accepted() -> None:
    for reason in ALLOWED[CONNACK]:
        assert (connack_v3(reason) == 0) == (reason == 0)
        assert 0 <= connack_v3(reason) <= 5


def test_return_codes_come_back_as_reasons() -> None:
    for code in range(6):
        reason = reason_of_connack_v3(code)
        assert reason is not None
        assert connack_v3(reason) == code
    assert reason_of_connack_v3(6) is None
    assert reason_of_connack_v3(-1) is None
