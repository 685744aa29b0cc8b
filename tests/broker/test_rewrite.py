"""Topic rewrite, placeholders and mount points."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.base.errors import ConfigError
from brookmq.broker.rewrite import RewriteRule, TopicRewriter, expand, mount


def rewriter(*rules: tuple[str, str, str, str]) -> TopicRewriter:
    return TopicRewriter([RewriteRule(*rule) for rule in rules])  # type: ignore[arg-type]


ORDERED = rewriter(
    ("all", "y/+/z/#", r"^y/(.+)/z/(.+)$", "y/z/$2"),
    ("all", "x/#", r"^x/y/(.+)$", "z/y/x/$1"),
    ("all", "x/y/+", r"^x/y/(\d+)$", "z/y/$1"),
)


@pytest.mark.parametrize(
    ("topic", "rewritten"),
    [
        ("y/def", "y/def"),  # no filter matches
        ("y/a/z/b", "y/z/b"),
        ("x/1/2", "x/1/2"),  # the filter matches, the expression does not
        ("x/y/2", "z/y/2"),  # two filters match: the later rule
        ("x/y/z", "x/y/z"),  # the later rule's expression does not match, the earlier rule is not tried
        ("x/y/a/b", "z/y/x/a/b"),
    ],
)
def test_later_rules_first_and_only_one_is_tried(topic: str, rewritten: str) -> None:
    assert ORDERED.rewrite_publish(topic.encode(), "c", None) == rewritten.encode()
    assert ORDERED.rewrite_filter(topic, "c", None) == rewritten


def test_actions() -> None:
    rules = rewriter(("publish", "a", "^a$", "p"), ("subscribe", "b", "^b$", "s"), ("all", "c", "^c$", "both"))
    assert [rules.rewrite_publish(topic, "", None) for topic in (b"a", b"b", b"c")] == [b"p", b"b", b"both"]
    assert [rules.rewrite_filter(topic, "", None) for topic in ("a", "b", "c")] == ["a", "s", "both"]


def test_no_rules_cost_nothing() -> None:
    rules = TopicRewriter([])
    topic = b"a/b"
    assert not rules.enabled
    assert rules.rewrite_publish(topic, "c", None) is topic
    assert ORDERED.enabled


@pytest.mark.parametrize("client", ["${client_id}", "${clientid}", "%c"])
@pytest.mark.parametrize("user", ["${username}", "%u"])
def test_placeholders_of_the_client(client: str, user: str) -> None:
    rules = rewriter(("all", "up/#", "^up/(.*)$", f"in/{client}/{user}/$1"))
    assert rules.rewrite_publish(b"up/x", "c1", "u1") == b"in/c1/u1/x"
    assert rules.rewrite_publish(b"up/x", "c1", None) == b"up/x"  # no user name: does not apply


def test_a_value_is_never_read_as_a_placeholder() -> None:
    rules = rewriter(("all", "#", "^a/(.*)$", "b/$1/%c"))
    assert rules.rewrite_publish(b"a/%c/$1", "$1%u", None) == b"b/%c/$1/$1%u"


@pytest.mark.parametrize("client_id", ["#", "+", "a+b", "a/#"])
def test_a_client_id_brings_no_wildcards(client_id: str) -> None:
    rules = rewriter(("all", "own", "^own$", "clients/${client_id}"))
    assert rules.rewrite_publish(b"own", client_id, None) == b"own"
    assert rules.rewrite_filter("own", client_id, None) == "own"


def test_shared_and_exclusive_prefixes_stay() -> None:
    rules = rewriter(("all", "t/#", "^t/(.*)$", "new/$1"))
    assert rules.rewrite_filter("$share/g/t/1", "c", None) == "$share/g/new/1"
    assert rules.rewrite_filter("$queue/t/1", "c", None) == "$queue/new/1"
    assert rules.rewrite_filter("$exclusive/t/1", "c", None) == "$exclusive/new/1"
    assert rules.rewrite_filter("$share/g/$exclusive/t/1", "c", None) == "$share/g/$exclusive/new/1"
    assert rules.rewrite_filter("$share/g/other", "c", None) == "$share/g/other"


def test_wildcards_of_subscriptions_are_text() -> None:
    rules = rewriter(("subscribe", "t/+", "^t/(.*)$", "new/$1"))
    assert rules.rewrite_filter("t/+", "c", None) == "new/+"
    assert rules.rewrite_filter("t/#", "c", None) == "t/#"


def test_what_would_be_no_filter_is_left() -> None:
    rules = rewriter(("all", "t/#", "^t/(.*)$", "$1/end"))
    assert rules.rewrite_filter("t/#", "c", None) == "t/#"
    assert rules.rewrite_publish(b"t/", "c", None) == b"/end"
    empty = rewriter(("all", "t/#", "^t/(.*)$", "$1"))
    assert empty.rewrite_publish(b"t/", "c", None) == b"t/"  # [MQTT-4.7.3-1]: at least one character
    long = rewriter(("all", "#", "^(.*)$", "$1$1"))
    assert long.rewrite_publish(b"x" * 40_000, "c", None) == b"x" * 40_000  # [MQTT-4.7.3-3]


def test_dollar_topics_are_hidden_from_leading_wildcards() -> None:
    """[MQTT-4.7.2-1]"""
    rules = rewriter(("all", "#", "^(.*)$", "all/$1"))
    assert rules.rewrite_publish(b"$SYS/x", "c", None) == b"$SYS/x"
    assert rules.rewrite_publish("é/x".encode(), "c", None) == "all/é/x".encode()


def test_to_delayed_publish() -> None:
    rules = rewriter(("publish", "later/#", "^later/(.*)$", "$delayed/10/$1"))
    assert rules.rewrite_publish(b"later/x", "c", None) == b"$delayed/10/x"


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        (("never", "a", "a", "b"), "rewrite[0].action"),
        (("all", "a/#/b", "a", "b"), "rewrite[0].filter"),
        (("all", "", "a", "b"), "rewrite[0].filter"),
        (("all", "a", "(", "b"), "rewrite[0].pattern"),
        (("all", "a", "(a)", "$2"), "rewrite[0].target"),
        (("all", "a", "(a)", "$0"), "rewrite[0].target"),
        (("all", "a", "(a)", "${who}"), "rewrite[0].target"),
    ],
)
def test_wrong_rules_are_named(rule: tuple[str, str, str, str], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        rewriter(rule)
    assert caught.value.path == path


def test_a_group_that_took_no_part_is_empty() -> None:
    rules = rewriter(("all", "a/#", "^a/(x)?(.*)$", "b/$1$2"))
    assert rules.rewrite_publish(b"a/y", "c", None) == b"b/y"


def test_expand() -> None:
    assert expand("devices/${client_id}/cmd", "c1") == "devices/c1/cmd"
    assert expand("%u/%c/100%/%x", "c1", "u1") == "u1/c1/100%/%x"
    assert expand("${username}/x", "c1") is None
    assert expand("${host}/x", "c1", host="h") == "h/x"
    assert expand("${nothing}/x", "c1") is None
    assert expand("plain", "c1") == "plain"
    assert expand("${client_id}", "a/b") == "a/b"
    assert expand("${client_id}", "a/b", single_level=True) is None
    assert expand("${client_id}", "#") is None


@given(st.text(max_size=20), st.text(min_size=1, max_size=10))
def test_expanding_brings_no_wildcards(template: str, client_id: str) -> None:
    template = template.replace("+", "").replace("#", "").replace("\0", "")
    expanded = expand(template + "${client_id}", client_id, client_id)
    assert expanded is None or not set("+#\0") & set(expanded)


def test_mount_points() -> None:
    assert mount(b"tenant/", b"a/b") == b"tenant/a/b"
    assert mount(b"", b"a/b") == b"a/b"
    assert mount(b"tenant/", b"$share/g/a/#") == b"$share/g/tenant/a/#"
    assert mount(b"tenant/", b"$exclusive/a") == b"$exclusive/tenant/a"
    assert mount(b"tenant/", b"$share/broken") == b"tenant/$share/broken"
    assert mount(b"tenant/", b"$SYS/x") == b"tenant/$SYS/x"
