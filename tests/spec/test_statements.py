"""Every normative statement for servers has an entry, and every entry its tests."""

from __future__ import annotations

import pytest

from tests.spec.statements import WITHOUT_TEST_MAX, Key, Statement, marked, read, required


@pytest.fixture(scope="module")
def entries() -> list[Statement]:
    return read()


@pytest.fixture(scope="module")
def collected() -> dict[Key, set[str]]:
    return marked()


def test_every_statement_has_one_entry(entries: list[Statement]) -> None:
    keys = [entry.key for entry in entries]
    assert required() - set(keys) == set()
    assert set(keys) - required() == set()
    assert len(keys) == len(set(keys))


def test_every_entry_says_what_it_asks_for(entries: list[Statement]) -> None:
    assert [entry.id for entry in entries if not entry.words.endswith(".")] == []


def test_at_most_ten_statements_have_no_test_and_each_says_why(entries: list[Statement]) -> None:
    without = [entry for entry in entries if not entry.tests]
    assert len(without) <= WITHOUT_TEST_MAX
    assert [entry.id for entry in without if not entry.reason] == []
    assert [entry.id for entry in entries if entry.tests and entry.reason] == []


def test_the_named_tests_are_those_that_name_the_statement(
    entries: list[Statement], collected: dict[Key, set[str]]
) -> None:
    """`python -m tests.spec.statements` puts it right."""
    for entry in entries:
        assert set(entry.tests) == collected.get(entry.key, set()), entry.key


def test_every_mark_names_a_statement(collected: dict[Key, set[str]]) -> None:
    assert set(collected) - required() == set()
