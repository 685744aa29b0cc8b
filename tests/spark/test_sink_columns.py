"""Which columns can be published: names and types, and what is said about others."""

from __future__ import annotations

import pytest

from brookmq.spark.schema import spark_schema
from brookmq.spark.sink_columns import sink_columns
from brookmq.spark.sink_options import sink_options
from tests.spark.schemas import schema_of

NONE = sink_options({}, stream=True)


def test_a_frame_of_the_source_can_be_written_back() -> None:
    found = sink_columns(schema_of(spark_schema()), NONE)
    assert set(found.places) == {
        "topic", "payload", "qos", "retain", "user_properties", "content_type", "response_topic", "correlation_data",
        "payload_format", "expires_at",
    }  # fmt: skip
    assert (found.payload_name, found.payload_is_text) == ("payload", False)


def test_where_columns_stand() -> None:
    found = sink_columns(schema_of("node string, value string, message_expiry bigint, topic string"), NONE)
    assert found.places == {"payload": 1, "message_expiry": 2, "topic": 3}
    assert (found.payload_name, found.payload_is_text) == ("value", True)


def test_an_option_is_for_all_rows_whatever_stands_in_them() -> None:
    options = sink_options({"topic": "a", "qos": "1", "retain": "false"}, stream=True)
    columns = schema_of("topic string, payload binary, qos int, retain boolean")
    assert sink_columns(columns, options).places == {"payload": 1}
    assert sink_columns(schema_of("payload binary"), options).places == {"payload": 0}


@pytest.mark.parametrize("pairs", ["array<struct<name:string,value:string>>", "map<string,string>"])
def test_user_properties_are_pairs(pairs: str) -> None:
    found = sink_columns(schema_of(f"topic string, payload binary, user_properties {pairs}"), NONE)
    assert found.places["user_properties"] == 2


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("topic string", "no column payload"),
        ("topic string, payload binary, value string", "two columns payload and value"),
        ("payload binary", "neither a column topic nor the option topic"),
        ("topic string, payload binary, contenttype string", "no column 'contenttype'; did you mean content_type?"),
        ("topic string, payload binary, xyz int", "no column 'xyz'; there are topic, payload"),
        ("topic string, topic string, payload binary", "column topic is there twice"),
        ("topic binary, payload binary", "column topic has to be string, not binary"),
        ("topic string, payload int", "column payload has to be binary or string, not int"),
        ("topic string, payload struct<a:int>", "column payload has to be binary or string, not struct<a:int>"),
        ("topic string, payload binary, qos string", "column qos has to be int, not string"),
        ("topic string, payload binary, retain int", "column retain has to be boolean, not int"),
        ("topic string, payload binary, expires_at timestamp_ntz", "column expires_at has to be timestamp"),
        ("topic string, payload binary, message_expiry double", "column message_expiry has to be int"),
        ("topic string, payload binary, user_properties array<string>", "column user_properties has to be array<"),
        ("topic string, payload binary, user_properties map<string,int>", "column user_properties"),
        (
            "topic string, payload binary, user_properties array<struct<key:string,value:string>>",
            "column user_properties",
        ),
    ],
)
def test_what_is_wrong_is_named(columns: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^brookmq: .*{message}"):
        sink_columns(schema_of(columns), NONE)
