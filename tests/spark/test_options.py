"""Options: what they mean, and what is said about wrong ones."""

from __future__ import annotations

import pytest

from brookmq.spark.options import SourceOptions, source_options
from brookmq.spark.schema import COLUMNS


def test_nothing_given() -> None:
    assert source_options({}) == SourceOptions(
        servers=("http://127.0.0.1:18083",), token=None, filters=("#",), start=None, end=None, rows_max=None,
        partitions_min=None, columns=tuple(COLUMNS), fail_on_data_loss=True, reader_name=None, push_down=False,
    )  # fmt: skip


def test_everything_given_in_any_case() -> None:
    given = {
        "SERVERS": "http://a:1, b:2,https://[::1]:3/", "token": "t", "filter": " a/# , +/b", "startingposition": "1.5",
        "endingPosition": '{"0": 4}', "maxRowsPerBatch": "10", "minPartitions": "3", "columns": "offset, topic",
        "failOnDataLoss": "False", "readerName": "a.b-c", "pushDown": "TRUE",
    }  # fmt: skip
    assert source_options(given) == SourceOptions(
        servers=("http://a:1", "http://b:2", "https://[::1]:3"), token="t", filters=("a/#", "+/b"), start=1.5,
        end={0: 4}, rows_max=10, partitions_min=3, columns=("offset", "topic"), fail_on_data_loss=False,
        reader_name="a.b-c", push_down=True,
    )  # fmt: skip


def test_filters_with_commas_are_a_json_array() -> None:
    assert source_options({"filter": '["a,b/#", " c"]'}).filters == ("a,b/#", " c")


@pytest.mark.parametrize(
    ("text", "moment"),
    [("2026-11-15T12:00:00Z", 1794744000.0), ("2026-11-15T13:00:00.5+01:00", 1794744000.5), ("0", 0.0)],
)
def test_times(text: str, moment: float) -> None:
    assert source_options({"startingPosition": text}).start == moment


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("filtre", "a", "no option 'filtre'; did you mean filter?"),
        ("zzz", "a", "no option 'zzz'; there are servers, token"),
        ("servers", "ftp://a", "option servers has 'ftp://a'"),
        ("servers", "http://a:99999", "option servers"),
        ("servers", "http://a/path", "option servers"),
        ("servers", "", "option servers"),
        ("filter", "a/#/b", "'a/#/b' is no topic filter"),
        ("filter", '["a"', "option filter is no JSON array"),
        ("filter", "[1]", "option filter takes filters"),
        ("filter", "[]", "option filter takes filters"),
        ("startingPosition", "soon", "option startingPosition takes earliest, latest, a time"),
        ("startingPosition", "2026-11-15T12:00:00", "option startingPosition"),
        ("startingPosition", "-1", "option startingPosition"),
        ("startingPosition", "nan", "option startingPosition"),
        ("startingPosition", "{", "option startingPosition takes offsets"),
        ("endingPosition", "earliest", "option endingPosition takes latest, a time"),
        ("maxRowsPerBatch", "0", "option maxRowsPerBatch takes a number above 0"),
        ("maxRowsPerBatch", "many", "option maxRowsPerBatch takes a number above 0"),
        ("columns", "topic,tpoic", "option columns has 'tpoic'"),
        ("columns", "topic,topic", "option columns has a name twice"),
        ("failOnDataLoss", "maybe", "option failOnDataLoss takes true or false"),
        ("readerName", "a b", "option readerName takes letters"),
    ],
)
def test_what_is_wrong_is_named(name: str, value: str, message: str) -> None:
    with pytest.raises(ValueError, match="brookmq: ") as raised:
        source_options({name: value})
    assert message in str(raised.value)
