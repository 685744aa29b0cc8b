"""Listings: every row once, in order, in bounded pieces of time."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.ops import paging
from brookmq.ops.paging import Listing
from brookmq.ops.view import Page

KEYS = st.lists(st.text(min_size=1, max_size=4), unique=True, max_size=60)


def listing_of(keys: list[str], parts: int = 1) -> Listing[str]:
    return Listing(lambda: [keys[part::parts] for part in range(parts)], lambda key: key)


async def all_pages(listing: Listing[str], limit: int, wanted: str = "") -> list[list[str]]:
    pages: list[list[str]] = []
    after: str | None = ""
    while after is not None:
        page = await listing.page(after, limit, lambda row: wanted in row)
        pages.append(list(page.items))
        after = page.next
    return pages


@given(keys=KEYS, limit=st.integers(1, 7), parts=st.integers(1, 5))
def test_pages_together_are_all_rows_in_order(keys: list[str], limit: int, parts: int) -> None:
    pages = asyncio.run(all_pages(listing_of(keys, parts), limit))
    assert [row for page in pages for row in page] == sorted(keys)
    assert all(len(page) <= limit for page in pages)
    assert all(len(page) == limit for page in pages[:-1])


@given(keys=KEYS, wanted=st.text(max_size=1))
def test_search_gives_only_what_matches(keys: list[str], wanted: str) -> None:
    pages = asyncio.run(all_pages(listing_of(keys), 3, wanted))
    assert [row for page in pages for row in page] == sorted(key for key in keys if wanted in key)


def test_an_empty_table_is_one_empty_page() -> None:
    assert asyncio.run(listing_of([]).page("", 10)) == Page([], None)


def test_parts_may_be_many_and_small_or_read_on_the_way() -> None:
    keys = [f"{number:05}" for number in range(3000)]
    small: Listing[str] = Listing(lambda: ([key] for key in keys), lambda key: key)
    generated: Listing[str] = Listing(lambda: [(key for key in keys)], lambda key: key)
    for listing in (small, generated):
        page = asyncio.run(listing.page("00010", 5))
        assert page.items == keys[11:16]
        assert len(listing._snapshot or ()) == 1


def test_rows_that_are_gone_are_left_out() -> None:
    table = {"a": 1, "b": 2, "c": 3}
    listing: Listing[int] = Listing(lambda: (table,), table.get)

    async def read() -> Page[int]:
        first = await listing.page("", 1)
        assert first.next is not None
        del table["b"]
        return await listing.page(first.next, 10)

    assert asyncio.run(read()).items == [3]


def test_a_first_page_shows_who_came_just_now() -> None:
    table = {"a": 1}
    listing: Listing[int] = Listing(lambda: (table,), table.get)

    async def read() -> Page[int]:
        await listing.page("", 10)
        table["b"] = 2
        return await listing.page("", 10)

    assert asyncio.run(read()).items == [1, 2]


def test_a_rare_match_answers_with_a_short_page_and_a_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "SCANNED_ROWS_MAX", 10)
    keys = [f"{number:03}" for number in range(100)]
    pages = asyncio.run(all_pages(listing_of(keys), 5, "099"))
    assert pages[0] == []
    assert pages[-1] == ["099"]
    assert len(pages) == 10


def test_a_cursor_holds_when_the_keys_were_forgotten() -> None:
    keys = ["a", "b", "c"]
    listing = listing_of(keys)

    async def read() -> Page[str]:
        first = await listing.page("", 1)
        assert first.next is not None
        listing._forget()
        keys.append("aa")
        return await listing.page(first.next, 10)

    assert asyncio.run(read()).items == ["aa", "b", "c"]


def test_others_run_while_a_large_table_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "PART_KEYS", 100)
    monkeypatch.setattr(paging, "SLICE_S", 0.0)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def read() -> tuple[int, int]:
        counting = asyncio.create_task(count_turns())
        listing = listing_of([str(number) for number in range(2000)])
        await listing.page("", 1)
        while_sorting = turns
        await listing.page("1", 10, lambda row: row == "none")
        counting.cancel()
        return while_sorting, turns - while_sorting

    while_sorting, while_searching = asyncio.run(read())
    assert while_sorting >= 19
    assert while_searching >= 1000
