"""Durations, sizes, addresses, filters and placeholders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.base.config.values import (
    Address,
    check_filter,
    check_mountpoint,
    check_pattern,
    check_placeholders,
    parse_address,
    parse_duration,
    parse_size,
    render_duration,
    render_size,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7d", 604_800), ("30s", 30), ("5m", 300), ("1h", 3_600), ("500ms", 0.5), ("1.5h", 5_400), ("30", 30), (12, 12)],
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("1MiB", 1 << 20), ("64KiB", 65_536), ("2GiB", 2 << 30), ("1kB", 1_000), ("1_000B", 1_000), ("17", 17), (5, 5)],
)
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "5x", "-5s", "s", "1d2h", "5 s s", "1e3s", "٣s"])
def test_wrong_durations_say_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match="such as"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["5s", "1mib", "MiB"])
def test_wrong_sizes_say_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match="such as"):
        parse_size(text)


@given(st.integers(0, 2**40))
def test_what_is_rendered_is_read_back(number: int) -> None:
    assert parse_duration(render_duration(number)) == number
    assert parse_size(render_size(number)) == number


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:1883", Address("127.0.0.1", 1883)),
        ("[::1]:0", Address("::1", 0)),
        ("broker.example.org:65535", Address("broker.example.org", 65_535)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text", ["", "1883", ":1883", "127.0.0.1", "127.0.0.1:65536", "::1:1883", "[::1]", "a b:1", "a:-1"]
)
def test_wrong_addresses_show_what_one_looks_like(text: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        parse_address(text)


def test_loopback() -> None:
    assert all(parse_address(text).is_loopback for text in ("127.0.0.1:1", "127.8.0.1:1", "[::1]:1", "localhost:1"))
    assert not any(parse_address(text).is_loopback for text in ("0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.org:1"))


@pytest.mark.parametrize(
    ("one", "other", "collide"),
    [
        ("127.0.0.1:1", "127.0.0.1:1", True),
        ("127.0.0.1:1", "127.0.0.1:2", False),
        ("127.0.0.1:0", "127.0.0.1:0", False),
        ("0.0.0.0:1", "127.0.0.1:1", True),
        ("[::]:1", "[::1]:1", True),
        ("[::1]:1", "127.0.0.1:1", False),
        ("[::]:1", "127.0.0.1:1", False),
    ],
)
def test_collisions(one: str, other: str, collide: bool) -> None:
    assert parse_address(one).collides(parse_address(other)) is collide
    assert parse_address(other).collides(parse_address(one)) is collide


@pytest.mark.parametrize("text", ["a", "#", "+", "a/+/b", "a/#", "/", "+/+/#", "$share/g/a"])
def test_filters(text: str) -> None:
    assert check_filter(text) == text


@pytest.mark.parametrize("text", ["", "a#", "#/a", "a/#/b", "a+", "a/+b/c", "a\0b"])
def test_wrong_filters(text: str) -> None:
    with pytest.raises(ValueError, match="topic filter"):
        check_filter(text)


def test_placeholders() -> None:
    assert check_placeholders("a/${client_id}/${username}") == "a/${client_id}/${username}"
    for text in ("${clientid}", "a/${", "${}"):
        with pytest.raises(ValueError, match="not known"):
            check_placeholders(text)


def test_mount_points_have_no_wildcards() -> None:
    assert check_mountpoint("tenant/${username}/") == "tenant/${username}/"
    with pytest.raises(ValueError, match="wildcards"):
        check_mountpoint("tenant/+/")


def test_patterns_have_to_compile() -> None:
    assert check_pattern("^a/(.+)$") == "^a/(.+)$"
    with pytest.raises(ValueError, match="not a regular expression"):
        check_pattern("(")
