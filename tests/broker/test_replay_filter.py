"""The forms of ``$replay/…``."""

from __future__ import annotations

import pytest

from brookmq.base.errors import PeerError
from brookmq.broker.replay_filter import ReplayStart, parse_replay
from brookmq.mqtt.topics import check_filter


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("$replay/earliest/a/#", ReplayStart("a/#")),
        ("$replay/earliest/#", ReplayStart("#")),
        ("$replay/earliest/$events/#", ReplayStart("$events/#")),
        ("$replay/earliest//", ReplayStart("/")),
        ("$replay/earliest/time/5/x", ReplayStart("time/5/x")),
        ("$replay/time/1767225600/a", ReplayStart("a", time=1767225600.0)),
        ("$replay/time/1767225600.25/a/b", ReplayStart("a/b", time=1767225600.25)),
        ("$replay/time/0/+", ReplayStart("+", time=0.0)),
        ("$replay/time/99999999999/a", ReplayStart("a", time=99999999999.0)),
        ("$replay/time/1767225600250/a", ReplayStart("a", time=1767225600.25)),
        ("$replay/time/2026-01-01T00:00:00Z/a", ReplayStart("a", time=1767225600.0)),
        ("$replay/time/2026-01-01T00:00Z/a", ReplayStart("a", time=1767225600.0)),
        ("$replay/time/2026-01-01T00:00:00.25Z/a", ReplayStart("a", time=1767225600.25)),
        ("$replay/offset/17/a/b", ReplayStart("a/b", offset=17)),
        ("$replay/offset/0:17/a/#", ReplayStart("a/#", offsets=((0, 17),))),
        ("$replay/offset/0:17,3:5/#", ReplayStart("#", offsets=((0, 17), (3, 5)))),
        ("$replay/offset/0:281474976710655/a", ReplayStart("a", offsets=((0, (1 << 48) - 1),))),
    ],
)
def test_right_forms(text: str, start: ReplayStart) -> None:
    check_filter(text)
    assert parse_replay(text) == start


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("$replay/", "forms"),
        ("$replay/#", "forms"),
        ("$replay/latest/a", "forms"),
        ("$replay/Earliest/a", "forms"),
        ("$replay/earliest", "no topic filter"),
        ("$replay/earliest/", "no topic filter"),
        ("$replay/time/5", "no topic filter"),
        ("$replay/time/5/", "no topic filter"),
        ("$replay/offset/5", "no topic filter"),
        ("$replay/time//a", "unix seconds"),
        ("$replay/time/-5/a", "unix seconds"),
        ("$replay/time/1e9/a", "unix seconds"),
        ("$replay/time/nan/a", "unix seconds"),
        ("$replay/time/5./a", "unix seconds"),
        ("$replay/time/\N{ARABIC-INDIC DIGIT FIVE}/a", "unix seconds"),
        ("$replay/time/1234567890123456/a", "unix seconds"),
        ("$replay/time/2026-01-01/a", "unix seconds"),
        ("$replay/time/2026-01-01T00:00:00/a", "unix seconds"),
        ("$replay/time/2026-02-30T00:00:00Z/a", "unix seconds"),
        ("$replay/time/0000-01-01T00:00:00Z/a", "unix seconds"),
        ("$replay/offset//a", "PARTITION:OFFSET"),
        ("$replay/offset/x/a", "PARTITION:OFFSET"),
        ("$replay/offset/0:1,/a", "PARTITION:OFFSET"),
        ("$replay/offset/0:1,2/a", "PARTITION:OFFSET"),
        ("$replay/offset/0:-1/a", "PARTITION:OFFSET"),
        ("$replay/offset/0:1,0:2/a", "two offsets"),
        ("$replay/offset/281474976710656/a", "no such offset"),
        ("$replay/offset/17/a/#", "wildcards"),
        ("$replay/earliest/$SYS/#", "begin with \\$"),
        ("$replay/earliest/$share/g/a", "begin with \\$"),
        ("$replay/earliest/$replay/earliest/a", "begin with \\$"),
    ],
)
def test_wrong_forms(text: str, why: str) -> None:
    with pytest.raises(PeerError, match=why) as caught:
        parse_replay(text)
    assert caught.value.reason == 0x8F
