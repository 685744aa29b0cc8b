"""Addresses of cores: what people write, and what a cluster can be made of."""

from __future__ import annotations

import pytest

from brookmq.base.errors import OperationError
from brookmq.store.core_address import CoreAddress, check_cores, parse_core


@pytest.mark.parametrize(
    ("text", "core", "store"),
    [
        ("a@10.0.0.1", CoreAddress("a@10.0.0.1", "10.0.0.1", 4222, 6222), "10.0.0.1:4222"),
        ("core-1@x.example", CoreAddress("core-1@x.example", "x.example", 4222, 6222), "x.example:4222"),
        ("a@h:1/65535", CoreAddress("a@h", "h", 1, 65535), "h:1"),
        ("a@[::1]", CoreAddress("a@[::1]", "::1", 4222, 6222), "[::1]:4222"),
        ("a@[fe80::1]:14222/16222", CoreAddress("a@[fe80::1]", "fe80::1", 14222, 16222), "[fe80::1]:14222"),
    ],
)
def test_what_people_write(text: str, core: CoreAddress, store: str) -> None:
    assert parse_core(text) == core
    assert core.store == store
    assert str(core) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "@h",
        "a@",
        "a@h:4222",
        "a@h:0/1",
        "a@h:1/65536",
        "a@h:7/7",
        "a@::1",
        "a@[h]",
        "a@[1:2]",
        "a b@h",
        "a@h/x",
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(OperationError, match="is not the address of a core"):
        parse_core(text)


def cores(*texts: str) -> list[CoreAddress]:
    return [parse_core(text) for text in texts]


def test_a_cluster_has_an_odd_number_of_cores() -> None:
    for count in (3, 5, 7):
        check_cores(cores(*(f"n@h{number}" for number in range(count))))
    for count in (0, 1, 2, 4, 6, 8, 9):
        with pytest.raises(OperationError, match=rf"3, 5 or 7 cores.*; {count} given"):
            check_cores(cores(*(f"n@h{number}" for number in range(count))))


def test_no_name_and_no_address_stands_there_twice() -> None:
    with pytest.raises(OperationError, match="a@h is named twice"):
        check_cores(cores("a@h", "a@h:1/2", "c@h:3/4"))
    with pytest.raises(OperationError, match="h:4222 is the address of two"):
        check_cores(cores("a@h", "b@h", "c@h:3/4"))
    with pytest.raises(OperationError, match="h:2 is the address of two"):
        check_cores(cores("a@h:1/2", "b@h:2/3", "c@h:4/5"))
