"""The checker itself: right histories pass, and each way to be wrong is found and called by its name."""

from __future__ import annotations

from collections.abc import Iterable

from tests.faults.durability.checker import check, owed, summary
from tests.faults.durability.history import (
    Answered,
    Closed,
    Connected,
    Connecting,
    Event,
    Message,
    Received,
    Released,
    Retained,
    Sent,
    Settled,
    Spoiled,
    Subscribed,
    Subscribing,
)
from tests.faults.durability.story import Duty, matches, read

ONE, TWO, THREE = (Message("t", number) for number in (1, 2, 3))
WILL = Message("will", 1)


def rules(events: Iterable[Event]) -> list[str]:
    return [violation.rule for violation in check(list(events))]


def connect(client: str, connection: int, life: int = 1, *, present: bool = False, clean: bool = False) -> list[Event]:
    return [Connecting(client, connection, life, clean), Connected(client, connection, present)]


def again(client: str, connection: int, life: int) -> list[Event]:
    """The connection before breaks, and the session is taken up again."""
    return [Closed(client, connection - 1, orderly=False), *connect(client, connection, life, present=True)]


def subscribe(client: str, qos: int, group: str = "", filter: str = "#") -> list[Event]:
    return [Subscribing(client, filter, qos, group), Subscribed(client, filter, group)]


def publish(message: Message, qos: int = 1) -> list[Event]:
    return [Sent("p", message, qos, message.number), Settled("p", message)]


def take(client: str, connection: int, message: Message, packet_id: int = 1, *, dup: bool = False) -> list[Event]:
    """At QoS 1, with its PUBACK."""
    return [
        Received(client, connection, message, 1, packet_id, dup=dup),
        Answered(client, connection, packet_id),
    ]


def take2(client: str, connection: int, message: Message, packet_id: int = 1, *, dup: bool = False) -> list[Event]:
    """At QoS 2, to the PUBREL."""
    return [
        Received(client, connection, message, 2, packet_id, dup=dup),
        Answered(client, connection, packet_id),
        Released(client, connection, packet_id),
    ]


READY1: list[Event] = [*connect("p", 1), *connect("s", 11), *subscribe("s", 1)]
READY2: list[Event] = [*connect("p", 1), *connect("s", 11), *subscribe("s", 2)]


# LOST, EARLY


def test_a_run_without_faults_is_right() -> None:
    assert rules([*READY1, *publish(ONE), *take("s", 11, ONE), *publish(TWO), *take("s", 11, TWO)]) == []
    assert rules([*READY2, *publish(ONE, 2), *take2("s", 11, ONE), *publish(TWO, 2), *take2("s", 11, TWO)]) == []


def test_an_acknowledged_message_that_does_not_come_is_lost() -> None:
    events = [*READY1, *publish(ONE), *publish(TWO), *take("s", 11, TWO)]
    assert rules(events) == ["LOST"]
    assert owed(read(events)) == 1
    assert "t" in summary(check(events))


def test_one_that_was_not_acknowledged_or_was_refused_may_be_lost() -> None:
    assert rules([*READY1, Sent("p", ONE, 1, 1)]) == []
    assert rules([*READY1, Sent("p", ONE, 1, 1), Settled("p", ONE, accepted=False)]) == []


def test_one_that_was_not_acknowledged_may_come() -> None:
    assert rules([*READY1, Sent("p", ONE, 1, 1), *take("s", 11, ONE)]) == []


def test_who_subscribed_later_gets_nothing_that_was_acknowledged_before() -> None:
    before: list[Event] = [*connect("p", 1), *connect("s", 11), *publish(ONE)]
    assert rules([*before, *subscribe("s", 1)]) == []
    assert rules([*before, *subscribe("s", 1), *take("s", 11, ONE)]) == ["EARLY"]


def test_while_a_subscription_is_asked_for_both_are_right() -> None:
    events: list[Event] = [*connect("p", 1), *connect("s", 11), Subscribing("s", "#", 1), *publish(ONE)]
    granted = Subscribed("s", "#")
    assert rules([*events, granted]) == []
    assert rules([*events, granted, *take("s", 11, ONE)]) == []


def test_a_clean_start_ends_what_is_owed_and_begins_anew() -> None:
    events: list[Event] = [*READY1, *publish(ONE), *connect("s", 12, clean=True), *subscribe("s", 1)]
    assert rules(events) == []
    assert rules([*events, *take("s", 12, ONE)]) == ["EARLY"]
    assert rules([*events, *publish(TWO)]) == ["LOST"]


def test_a_filter_that_does_not_match_owes_nothing() -> None:
    assert rules([*connect("p", 1), *connect("s", 11), *subscribe("s", 1, filter="other/#"), *publish(ONE)]) == []


def test_filters() -> None:
    for filter, topic, expected in (
        ("#", "a/b", True),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("a/+", "a/b", True),
        ("a/+", "a/b/c", False),
        ("a/+/c", "a/b/c", True),
        ("a/b", "a", False),
        ("a", "a/b", False),
        ("b/#", "a/b", False),
    ):
        assert matches(filter, topic) is expected, (filter, topic)


# REPEATED at QoS 1


def test_a_message_that_comes_twice_in_one_connection() -> None:
    assert rules([*READY1, *publish(ONE), *take("s", 11, ONE), *take("s", 11, ONE, 2)]) == ["REPEATED"]
    assert rules([*READY1, *publish(ONE), *take("s", 11, ONE), *take("s", 11, ONE, dup=True)]) == ["REPEATED"]


def test_it_may_if_its_publisher_sent_it_twice_but_not_three_times() -> None:
    resent: list[Event] = [*READY1, Sent("p", ONE, 1, 1), *again("p", 2, 1), Sent("p", ONE, 1, 1, dup=True)]
    events = [*resent, Settled("p", ONE), *take("s", 11, ONE), *take("s", 11, ONE, 2)]
    assert rules(events) == []
    assert rules([*events, *take("s", 11, ONE, 3)]) == ["REPEATED"]


def test_what_was_published_at_qos_2_is_new_once_also_where_it_comes_at_qos_1() -> None:
    events: list[Event] = [*READY1, Sent("p", ONE, 2, 1), *again("p", 2, 1), Sent("p", ONE, 2, 1, dup=True)]
    events += [Settled("p", ONE), *take("s", 11, ONE)]
    assert rules(events) == []
    assert rules([*events, *take("s", 11, ONE, 2)]) == ["REPEATED"]


def test_a_redelivery_in_a_new_connection_has_dup_and_the_same_packet_id() -> None:
    events = [*READY1, *publish(ONE), *take("s", 11, ONE, 7), *again("s", 12, 1)]
    assert rules([*events, *take("s", 12, ONE, 7, dup=True)]) == []
    assert rules([*events, *take("s", 12, ONE, 7)]) == ["REPEATED"]
    assert rules([*events, *take("s", 12, ONE, 8, dup=True)]) == ["REPEATED"]


def test_after_an_orderly_end_what_was_answered_does_not_come_again() -> None:
    left: list[Event] = [Closed("s", 11, orderly=True), *connect("s", 12, present=True)]
    assert rules([*READY1, *publish(ONE), *take("s", 11, ONE), *left, *take("s", 12, ONE, dup=True)]) == ["REPEATED"]
    unanswered = Received("s", 11, ONE, 1, 1)
    assert rules([*READY1, *publish(ONE), unanswered, *left, *take("s", 12, ONE, dup=True)]) == []


def test_when_the_node_has_died_it_may_come_again_in_any_form() -> None:
    events = [*READY1, *publish(ONE), *take("s", 11, ONE, 7), *again("s", 12, 2)]
    assert rules([*events, *take("s", 12, ONE, 9)]) == []
    assert rules([*events, *take("s", 12, ONE, 9), *take("s", 12, ONE, 10)]) == ["REPEATED"]


# REPEATED and PACKET_ID at QoS 2


def test_qos_2_comes_once_whatever_dies() -> None:
    events = [*READY2, *publish(ONE, 2), *take2("s", 11, ONE), *again("s", 12, 2)]
    assert rules(events) == []
    assert rules([*events, *take2("s", 12, ONE, 1, dup=True)]) == ["REPEATED"]
    assert rules([*events, *take2("s", 12, ONE, 9)]) == ["REPEATED"]


def test_before_its_pubrel_it_comes_again_with_its_packet_id() -> None:
    events: list[Event] = [*READY2, *publish(ONE, 2), Received("s", 11, ONE, 2, 5), Answered("s", 11, 5)]
    events += again("s", 12, 2)
    assert rules([*events, *take2("s", 12, ONE, 5, dup=True)]) == []
    assert rules([*events, *take2("s", 12, ONE, 5)]) == ["PACKET_ID"]
    assert rules([*events, *take2("s", 12, ONE, 6, dup=True)]) == ["REPEATED"]
    assert rules([*events, Released("s", 12, 5)]) == [], "the PUBREL alone comes, if the PUBREC was stored"


def test_an_open_packet_id_is_used_for_nothing_else() -> None:
    events: list[Event] = [*READY2, *publish(ONE, 2), *publish(TWO, 2), Received("s", 11, ONE, 2, 5)]
    assert rules([*events, *take2("s", 11, TWO, 5)]) == ["PACKET_ID"]
    assert rules([*events, Answered("s", 11, 5), Released("s", 11, 5), *take2("s", 11, TWO, 5)]) == []


def test_it_does_not_come_again_in_the_same_connection() -> None:
    events: list[Event] = [*READY2, *publish(ONE, 2), Received("s", 11, ONE, 2, 5)]
    assert rules([*events, *take2("s", 11, ONE, 5, dup=True)]) == ["PACKET_ID"]


# REORDERED


def test_first_deliveries_are_in_the_publishers_order() -> None:
    sent = [*publish(ONE), *publish(TWO), *publish(THREE)]
    assert rules([*READY1, *sent, *take("s", 11, TWO), *take("s", 11, ONE, 2), *take("s", 11, THREE)]) == ["REORDERED"]
    sent = [*publish(ONE, 2), *publish(TWO, 2)]
    assert rules([*READY2, *sent, *take2("s", 11, TWO), *take2("s", 11, ONE)]) == ["REORDERED"]


def test_redeliveries_may_go_back() -> None:
    events = [*READY1, *publish(ONE), *publish(TWO), *publish(THREE), *take("s", 11, ONE), *take("s", 11, TWO, 2)]
    events += again("s", 12, 2)
    assert rules([*events, *take("s", 12, ONE), *take("s", 12, TWO, 2), *take("s", 12, THREE, 3)]) == []


def test_the_copy_of_what_was_sent_before_the_subscription_may_come_behind() -> None:
    begin: list[Event] = [*connect("p", 1), *connect("s", 11), Subscribing("s", "#", 1), Sent("p", ONE, 1, 1)]
    granted: list[Event] = [Subscribed("s", "#"), *publish(TWO), *take("s", 11, TWO)]
    came: list[Event] = [Settled("p", ONE), *take("s", 11, ONE, 2)]
    assert rules([*begin, *granted, Sent("p", ONE, 1, 1, dup=True), *came]) == []
    assert rules([*begin, *granted, *came]) == ["REORDERED"]
    late: list[Event] = [*READY1, Sent("p", ONE, 1, 1), *publish(TWO), *take("s", 11, TWO)]
    assert rules([*late, Sent("p", ONE, 1, 1, dup=True), *came]) == ["REORDERED"]


def test_other_topics_have_an_order_of_their_own() -> None:
    other = Message("u", 1)
    assert rules([*READY1, *publish(TWO), *publish(other), *take("s", 11, TWO), *take("s", 11, other)]) == []


# shared groups


def test_one_member_of_a_group_is_enough_and_two_are_too_many() -> None:
    group: list[Event] = [*connect("p", 1), *connect("a", 21), *connect("b", 31)]
    group += [*subscribe("a", 2, "g"), *subscribe("b", 2, "g"), *publish(ONE, 2), *publish(TWO, 2)]
    assert rules([*group, *take2("a", 21, TWO), *take2("b", 31, ONE)]) == []
    assert rules([*group, *take2("a", 21, TWO)]) == ["LOST"]
    assert rules([*group, *take2("a", 21, TWO), *take2("b", 31, ONE), *take2("a", 21, ONE)]) == ["REPEATED"]


def test_at_qos_1_another_member_may_get_what_one_had() -> None:
    group: list[Event] = [*connect("p", 1), *connect("a", 21), *connect("b", 31)]
    group += [*subscribe("a", 1, "g"), *subscribe("b", 1, "g"), *publish(ONE), Received("a", 21, ONE, 1, 1)]
    assert rules([*group, Closed("a", 21, orderly=False), *take("b", 31, ONE)]) == []


# sessions


def test_session_present() -> None:
    assert rules(connect("s", 1, present=True)) == ["SESSION"]
    assert rules([*connect("s", 1), *connect("s", 2, 2)]) == ["SESSION"]
    assert rules([*connect("s", 1), *connect("s", 2, 2, present=True)]) == []
    assert rules([*connect("s", 1), *connect("s", 2, clean=True, present=True)]) == ["SESSION"]
    assert rules([*connect("s", 1), *connect("s", 2, clean=True), *connect("s", 3, present=True)]) == []


def test_without_a_connack_nobody_knows() -> None:
    unanswered = Connecting("s", 1, 1, clean=False)
    for present in (False, True):
        assert rules([unanswered, *connect("s", 2, present=present)]) == []
        cleaning = Connecting("s", 2, 1, clean=True)
        assert rules([*connect("s", 1), cleaning, *connect("s", 3, present=present)]) == []
    assert rules([*connect("s", 1), Connecting("s", 2, 1, clean=False), *connect("s", 3, 2)]) == ["SESSION"]


def test_a_transient_session_is_never_there() -> None:
    first: list[Event] = [Connecting("w", 1, 1, clean=True, kept=False), Connected("w", 1, present=False)]
    assert rules([*first, *connect("w", 2, clean=True)]) == []
    assert rules([*first, *connect("w", 2, present=True)]) == ["SESSION"]


# wills


def with_will(*, orderly: bool, next_life: int, answered: bool = True) -> list[Event]:
    events: list[Event] = [*READY2, Connecting("w", 41, 1, clean=False, will=WILL)]
    events += [Connected("w", 41, present=False)] if answered else []
    events += [Closed("w", 41, orderly=orderly), Connecting("w", 42, next_life, clean=False)]
    return [*events, Connected("w", 42, present=True)] if answered else events


def test_the_will_of_a_broken_connection_comes_once() -> None:
    for life in (1, 2):
        events = with_will(orderly=False, next_life=life)
        assert rules([*events, *take2("s", 11, WILL)]) == []
        assert rules(events) == ["LOST"]
        assert rules([*events, *take2("s", 11, WILL), *take2("s", 11, WILL, 2)]) == ["REPEATED"]


def transient_will(*, orderly: bool) -> list[Event]:
    events: list[Event] = [*READY2, Connecting("w", 41, 1, clean=True, kept=False, will=WILL)]
    return [*events, Connected("w", 41, present=False), Closed("w", 41, orderly=orderly)]


def test_the_will_of_a_transient_session_is_sure_when_something_was_stored_behind_it() -> None:
    events = transient_will(orderly=False)
    assert rules(events) == []
    assert rules([*events, *connect("other", 51, 2)]) == []
    assert rules([*events, *connect("other", 51, 1)]) == ["LOST"]
    assert rules([*events, *connect("other", 51, 1), *take2("s", 11, WILL)]) == []


def test_that_somebody_took_leave_is_sure_when_something_was_stored_behind_it() -> None:
    events = transient_will(orderly=True)
    assert rules([*events, *take2("s", 11, WILL)]) == []
    assert rules([*events, *connect("other", 51, 2), *take2("s", 11, WILL)]) == []
    assert rules([*events, *connect("other", 51, 1), *take2("s", 11, WILL)]) == ["FORBIDDEN"]


def test_no_will_after_a_disconnect_that_was_surely_taken() -> None:
    events = with_will(orderly=True, next_life=1)
    assert rules(events) == []
    assert rules([*events, *take2("s", 11, WILL)]) == ["FORBIDDEN"]
    assert rules([*with_will(orderly=True, next_life=2), *take2("s", 11, WILL)]) == []


def test_a_will_of_a_connection_that_was_never_accepted_may_come() -> None:
    events = with_will(orderly=False, next_life=2, answered=False)
    assert read(events).published[WILL].duty is Duty.ALLOWED
    assert rules(events) == []
    assert rules([*events, *take2("s", 11, WILL)]) == []


# the rest


def test_messages_that_nobody_sent_or_that_have_changed() -> None:
    assert rules([*READY1, Received("s", 11, ONE, 1, 1)]) == ["STRAY"]
    assert rules([*READY1, Spoiled("s", "t", "a payload of 3 bytes")]) == ["STRAY"]


def test_the_qos_is_the_lower_of_both() -> None:
    assert rules([*READY2, *publish(ONE, 1), *take("s", 11, ONE)]) == []
    assert rules([*READY2, *publish(ONE, 2), *take("s", 11, ONE)]) == ["QOS"]
    assert rules([*READY1, *publish(ONE, 2), *take2("s", 11, ONE)]) == ["QOS"]


def test_the_retained_message_is_the_last_acknowledged_or_a_later_one() -> None:
    events: list[Event] = [*publish(ONE), *publish(TWO), Sent("p", THREE, 1, 3)]
    assert rules([*events, Retained("t", 1)]) == ["RETAINED"]
    assert rules([*events, Retained("t", 0)]) == ["RETAINED"]
    assert rules([*events, Retained("t", 4)]) == ["RETAINED"]
    assert rules([*events, Retained("t", 2)]) == []
    assert rules([*events, Retained("t", 3)]) == []
