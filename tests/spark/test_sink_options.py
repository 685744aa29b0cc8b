"""Options of the sink: what they mean, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from brookmq.spark.sink_columns import IGNORED, KNOWN
from brookmq.spark.sink_options import SINK, SinkOptions, sink_options

GUIDE = Path(__file__).parents[2] / "docs/guide/spark-sink.md"


@pytest.mark.parametrize("stream", [False, True])
def test_nothing_given(stream: bool) -> None:
    assert sink_options({}, stream=stream) == SinkOptions(
        servers=("http://127.0.0.1:18083",), token=None, topic=None, qos=None, retain=None, query=None, batch=None,
        skip_bad_rows=False, sort_rows=False,
    )  # fmt: skip


def test_everything_given_in_any_case() -> None:
    given = {
        "SERVERS": "a:1", "token": "t", "Topic": "a/b", "qos": " 2 ", "retain": "True", "query": "my/query",
        "batch": "7", "onBadRow": "SKIP", "sortrows": "true",
    }  # fmt: skip
    assert sink_options(given, stream=False) == SinkOptions(
        servers=("http://a:1",), token="t", topic="a/b", qos=2, retain=True, query="my/query", batch=7,
        skip_bad_rows=True, sort_rows=True,
    )  # fmt: skip


def test_false_is_not_the_same_as_nothing() -> None:
    assert sink_options({"retain": "false", "qos": "0"}, stream=True).retain is False
    assert sink_options({"retain": "false", "qos": "0"}, stream=True).qos == 0


def test_what_spark_adds_to_the_options_of_a_stream() -> None:
    given = {"checkpointLocation": "/c", "queryName": "q"}
    assert sink_options(given, stream=True).query is None
    with pytest.raises(ValueError, match="no option 'checkpointlocation'"):
        sink_options(given, stream=False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"topics": "a"}, "no option 'topics'; did you mean topic?"),
        ({"xyz": "a"}, "no option 'xyz'; there are servers, token, topic, qos"),
        ({"servers": "ftp://a"}, "option servers has 'ftp://a'"),
        ({"topic": "a/#"}, "option topic has 'a/#', which can't be published to: .*wildcards"),
        ({"topic": ""}, "option topic has ''"),
        ({"qos": "3"}, "option qos takes 0, 1 or 2, not '3'"),
        ({"qos": ""}, "option qos"),
        ({"retain": "1"}, "option retain takes true or false"),
        ({"query": "a"}, "options query and batch go together"),
        ({"batch": "1"}, "options query and batch go together"),
        ({"query": "", "batch": "1"}, "option query takes a name"),
        ({"query": "x" * 1025, "batch": "1"}, "option query takes a name"),
        ({"query": "a", "batch": "-1"}, "option batch takes a number from 0 on"),
        ({"query": "a", "batch": str(1 << 62)}, "option batch takes a number"),
        ({"onBadRow": "ignore"}, "option onBadRow takes fail or skip, not 'ignore'"),
        ({"sortRows": "yes"}, "option sortRows takes true or false"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^brookmq: .*{message}"):
        sink_options(given, stream=False)


def test_a_stream_has_batches_of_its_own() -> None:
    assert sink_options({"query": "a"}, stream=True).query == "a"
    with pytest.raises(ValueError, match="option batch is for batch writes"):
        sink_options({"query": "a", "batch": "1"}, stream=True)


def test_the_guide_has_every_option_and_every_column() -> None:
    guide = GUIDE.read_text()
    columns, options = guide.split("## Options")
    assert [name for name in (*KNOWN, *IGNORED) if f"`{name}`" not in columns] == []
    assert [name for name in SINK if f"`{name}`" not in options] == []
