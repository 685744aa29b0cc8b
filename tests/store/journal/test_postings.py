"""Filter ids of the newest batches: the compiled form and its plain twin, held to a dictionary and to each other."""

from __future__ import annotations

import struct
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.store.journal import postings as imported

FOLDER = Path(imported.__file__ or "").parent


def _load(name: str, path: Path, loader: type[ExtensionFileLoader | SourceFileLoader]) -> ModuleType:
    spec = spec_from_file_location(name, path, loader=loader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compiled() -> ModuleType | None:
    if imported.COMPILED:
        return imported
    for suffix in EXTENSION_SUFFIXES:
        if (path := FOLDER / f"postings{suffix}").exists():
            return _load("brookmq.store.journal.postings", path, ExtensionFileLoader)
    return None


PLAIN = _load("tests.store.journal.plain_postings", FOLDER / "postings.py", SourceFileLoader)
COMPILED = _compiled()
FORMS = [PLAIN] if COMPILED is None else [PLAIN, COMPILED]
needs_both = pytest.mark.skipif(COMPILED is None, reason="there is no compiler here")

# Few ids and few parts, so that lists are long and ids repeat; the extremes of 32 bits are among them.
IDS = st.sampled_from([0, 1, 64, 65, 128, 129, 64 * 3 + 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32 - 64, 0xABCD0001])
BATCHES = st.lists(st.lists(IDS, max_size=12), max_size=40)
FIRST_NUMBERS = st.sampled_from([0, 7, 2**31 - 3, 2**32 - 5, 2**40])  # where 32 bits wrap, a little later


def pack(ids: list[int]) -> bytes:
    return struct.pack(f">{len(ids)}I", *ids)


def numbers_of(lists: tuple[list[int], bytes, bytes, bytes], form: ModuleType) -> dict[int, list[int]]:
    """What an encoded part says."""
    named, ids, ends, body = lists
    assert named == sorted(set(named))
    found: dict[int, list[int]] = {}
    start = 0
    for (one,), (end,) in zip(struct.iter_unpack("<I", ids), struct.iter_unpack("<I", ends), strict=True):
        found[one] = [named[place] for place in form.read_list(body, start, end)]
        start = end
    assert start == len(body)
    assert list(found) == sorted(found)
    return found


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "compiled" if form.COMPILED else "plain")
@given(batches=BATCHES, first=FIRST_NUMBERS, data=st.data())
def test_what_was_added_is_found_and_encoded(
    form: ModuleType, batches: list[list[int]], first: int, data: st.DataObject
) -> None:
    postings = form.Postings()
    model: dict[int, list[int]] = {}
    for part in range(form.PARTS):
        postings.begin(part, first)
    for number, ids in enumerate(batches, first):
        postings.add(number, pack(ids))
        for one in set(ids):
            model.setdefault(one, []).append(number)
    assert postings.size == sum(len(numbers) for numbers in model.values())
    last = first + len(batches)
    low = data.draw(st.integers(first, last))
    high = data.draw(st.integers(low, last))
    also = sorted(data.draw(st.sets(st.integers(low, high - 1), max_size=4))) if high > low else []
    for one, numbers in model.items():
        assert postings.find(one, low, high) == [number for number in numbers if low <= number < high]
    for part in {one % form.PARTS for one in model}:
        expected = {
            one: within
            for one, numbers in model.items()
            if one % form.PARTS == part and (within := [number for number in numbers if low <= number < high])
        }
        encoded = postings.encode(part, low, high, also)
        assert numbers_of(encoded, form) == expected
        assert encoded[0] == sorted({*also, *(number for numbers in expected.values() for number in numbers)})


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "compiled" if form.COMPILED else "plain")
@given(batches=BATCHES, first=FIRST_NUMBERS, cut=st.integers(0, 45))
def test_a_part_that_begins_later_forgets_and_takes_no_more_of_what_is_below(
    form: ModuleType, batches: list[list[int]], first: int, cut: int
) -> None:
    postings = form.Postings()
    for part in range(form.PARTS):
        postings.begin(part, first)
    half = len(batches) // 2
    for number, ids in enumerate(batches[:half], first):
        postings.add(number, pack(ids))
    postings.begin(1, first + cut)
    for number, ids in enumerate(batches[half:], first + half):
        postings.add(number, pack(ids))
    total = 0
    for one in {one for ids in batches for one in ids}:
        begin = first + cut if one % form.PARTS == 1 else first
        expected = [number for number, ids in enumerate(batches, first) if one in ids and number >= begin]
        assert postings.find(one, first, first + len(batches)) == expected
        total += len(expected)
    assert postings.size == total == sum(postings.pairs(part) for part in range(form.PARTS))


@needs_both
@given(batches=BATCHES)
def test_both_forms_write_the_same_bytes(batches: list[list[int]]) -> None:
    forms = [form.Postings() for form in FORMS]
    for number, ids in enumerate(batches):
        for postings in forms:
            postings.add(number, pack(ids))
    for part in (0, 1, 63):
        plain, compiled = (postings.encode(part, 0, len(batches), []) for postings in forms)
        assert plain == compiled


@needs_both
def test_the_compiled_form_refuses_what_would_lead_out_of_its_arrays() -> None:
    assert COMPILED is not None
    postings = COMPILED.Postings()
    postings.add(5, pack([1]))
    for part in (-1, 64):
        with pytest.raises(ValueError, match="no such part"):
            postings.begin(part, 0)
        with pytest.raises(ValueError, match="no such part"):
            postings.encode(part, 0, 1, [])
    with pytest.raises(ValueError, match="ends before"):
        postings.encode(1, 3, 2, [])
    with pytest.raises(ValueError, match="outside"):
        postings.encode(1, 0, 10, [10])


def test_memory_shrinks_with_what_is_forgotten() -> None:
    for form in FORMS:
        postings = form.Postings()
        for number in range(20_000):
            postings.add(number, pack([1, 65]))
        assert postings.size == 40_000
        for number in range(0, 20_001, 500):
            postings.begin(1, number)
        assert postings.size == 0
        assert postings.find(1, 0, 20_000) == []
