"""Types, names and groups: what is told before Spark is asked."""

from __future__ import annotations

import pytest

from brookmq.spark import schema as source_schema
from brookmq.spark.rules import RuleError, Schema, compile_rule
from brookmq.spark.rules.columns import MESSAGE_COLUMNS
from brookmq.spark.rules.compiling import WATERMARK_DEFAULT

DECLARED = Schema.checked("d", "json", {"fields": "temp double, name string, tags array<string>, at timestamp"})


def refused(text: str, schema: Schema | None = None) -> RuleError:
    with pytest.raises(RuleError) as caught:
        compile_rule(text, schema)
    return caught.value


def test_columns_are_those_of_the_source() -> None:
    found = {name: type.spark.replace("`", "") for name, type in MESSAGE_COLUMNS.items()}
    assert found == source_schema.COLUMNS
    assert list(found) == list(source_schema.COLUMNS)


@pytest.mark.parametrize(
    ("text", "column", "part"),
    [
        ('SELECT temp FROM "a"', 8, "no column temp"),
        ('SELECT topics FROM "a"', 8, "no column topics"),
        ('SELECT topic + 1 AS x FROM "a"', 8, "a number is needed here, this is text"),
        ('SELECT topic FROM "a" WHERE topic > 5', 37, "text and an integer do not go together"),
        ('SELECT topic FROM "a" WHERE qos', 29, "a boolean is needed here"),
        ("SELECT topic FROM \"a\" WHERE published_at > 'soon'", 44, "not a timestamp"),
        ('SELECT topic FROM "a" WHERE user_properties = 1', 47, "do not go together"),
        ('SELECT topic FROM "a" WHERE user_properties = user_properties', 29, "cannot be compared"),
        ('SELECT topic.level AS x FROM "a"', 8, "this is text and has no fields"),
        ('SELECT qos[0] AS x FROM "a"', 8, "this is integer and has no items"),
        ('SELECT CAST(published_at AS BOOLEAN) AS x FROM "a"', 13, "cannot become"),
        ("SELECT CASE WHEN retain THEN 1 ELSE 'x' END AS x FROM \"a\"", 37, "do not go together"),
        ('SELECT upper() AS x FROM "a"', 8, "takes other arguments"),
        ('SELECT upper(topic, topic) AS x FROM "a"', 8, "takes other arguments"),
        ('SELECT left(topic, qos) AS x FROM "a"', 20, "a whole number is needed"),
        ('SELECT left(topic, 20000) AS x FROM "a"', 20, "from 0 to 10000"),
        ("SELECT date_trunc('eon', published_at) AS x FROM \"a\"", 19, "one of year"),
        ('SELECT percentile(qos, 2) AS x FROM "a"', 24, "from 0 to 1"),
        ('SELECT object(topic, 1) AS x FROM "a"', 15, "single quotes"),
        ("SELECT object('a', 1, 'A', 2) AS x FROM \"a\"", 23, "twice"),
        ("SELECT object('a') AS x FROM \"a\"", 8, "in turn"),
        ('SELECT topic, TOPIC FROM "a"', 15, "two columns"),
        ('SELECT topic, payload.topic FROM "a"', 15, "two columns"),
        ('SELECT count(sum(qos)) AS x FROM "a"', 14, "inside of another"),
        ('SELECT topic FROM "a" WHERE count(*) > 1', 29, "cannot stand here"),
        ('SELECT count(*) AS n FROM "a" GROUP BY sum(qos)', 40, "cannot stand here"),
        ('SELECT topic, count(*) AS n FROM "a"', 8, "no single value for a group"),
        ('SELECT payload.a.b AS b, count(*) AS n FROM "a" GROUP BY payload.b', 8, "no single value"),
        ('SELECT topic FROM "a" HAVING qos > 1', 30, "HAVING is for groups"),
        ("SELECT window.start AS s FROM \"a\" GROUP BY window(published_at, 'soon')", 65, "not a duration"),
        ("SELECT window.start AS s FROM \"a\" GROUP BY window(published_at, '2 years')", 65, "not a duration"),
        ("SELECT window.start AS s FROM \"a\" GROUP BY window(published_at, '400 days')", 65, "longer than a year"),
        ("SELECT window.start AS s FROM \"a\" GROUP BY window(published_at, '0 days')", 65, "longer than nothing"),
        (
            "SELECT window.start AS s FROM \"a\" GROUP BY window(published_at, '1 minute', '2 minutes')",
            77,
            "no longer than it",
        ),
        ("SELECT window.start AS s FROM \"a\" GROUP BY window(expires_at, '1 minute')", 51, "over published_at"),
        ("SELECT window(published_at, '1 minute') AS w FROM \"a\"", 8, "in GROUP BY only"),
        ("SELECT topic FROM \"a\" WATERMARK '1 second'", 33, "WATERMARK is for windows"),
        ("SELECT window.middle AS s FROM \"a\" GROUP BY window(published_at, '1 minute')", 8, "no field middle"),
        ('FOREACH topic AS t DO t FROM "a"', 9, "FOREACH takes a list"),
        ('FOREACH payload.l AS topic DO qos FROM "a"', 9, "is a column already"),
        ('SELECT topic FROM "$events/client_onlin"', 19, "no event client_onlin"),
        ('SELECT INTERVAL 1 DAY AS x FROM "a"', 8, "cannot be a column"),
        ('SELECT -topic AS x FROM "a"', 9, "a number is needed"),
        ('SELECT NOT qos AS x FROM "a"', 12, "a boolean is needed"),
        ("SELECT topic FROM \"a\" WHERE topic LIKE 'a\\b'", 40, "no backslash"),
    ],
)
def test_refusals(text: str, column: int, part: str) -> None:
    error = refused(text)
    assert part in error.message
    assert (error.line, error.column) == (1, column)


def test_refusals_of_declared_fields() -> None:
    error = refused('SELECT payload.tmp AS t FROM "a"', DECLARED)
    assert "no field tmp" in error.message
    assert error.hint == "there are temp, name, tags, at"
    assert "this is text" in refused('SELECT payload.name + 1 AS t FROM "a"', DECLARED).message
    assert "no items" in refused('SELECT payload[0] AS t FROM "a"', DECLARED).message
    assert "no schema of their own" in refused('SELECT client_id FROM "$events/client_online"', DECLARED).message
    assert "has no fields" in refused('SELECT payload.a AS a FROM "a"', Schema.checked("t", "text")).message


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("payload.a", "variant"),
        ("payload", "string"),
        ("payload.a + 1", "double"),
        ("qos", "int"),
        ("qos + 1", "bigint"),
        ("qos / 2", "double"),
        ("qos + 0.5", "double"),
        ("payload.a > 1", "boolean"),
        ("CAST(payload.a AS TIMESTAMP)", "timestamp"),
        ("coalesce(payload.a, 'x')", "string"),
        ("coalesce(payload.a, payload.b)", "variant"),
        ("if(retain, payload.a, qos)", "double"),
        ("greatest(payload.a, payload.b)", "double"),
        ("published_at + INTERVAL 1 DAY", "timestamp"),
        ("greatest(current_date(), published_at)", "timestamp"),
        ("split(topic, '/')", "array<string>"),
        ("array(1, 2.5)", "array<double>"),
        ("object('a', qos, 'b', topic)", "struct<a:int,b:string>"),
        ("user_properties[0].value", "string"),
        ("correlation_data = 'x'", "boolean"),
        ("nth(payload.l, 1).a", "variant"),
    ],
)
def test_types_of_columns(expression: str, type: str) -> None:
    assert compile_rule(f'SELECT {expression} AS x FROM "a"').columns[0].type == type


def test_a_condition_gives_the_type() -> None:
    sql = compile_rule("SELECT topic FROM \"a\" WHERE payload.t > 30 AND payload.s = 'x' AND payload.ok").query_sql("b")
    assert "try_variant_get(__payload, '$.t', 'double') >" in sql
    assert "try_variant_get(__payload, '$.s', 'string') =" in sql
    assert "AND try_variant_get(__payload, '$.ok', 'boolean')" in sql


def test_the_payload_is_decoded_only_where_it_is_used() -> None:
    assert "parse_json" not in compile_rule('SELECT topic, payload FROM "a"').base_sql("m")
    assert compile_rule('SELECT payload.a AS a FROM "a" WHERE payload.b > 1').base_sql("m").count("parse_json") == 1


def test_what_the_source_has_to_read() -> None:
    rule = compile_rule('SELECT payload.t AS t, clientid FROM "a/+", "b" WHERE qos > 0')
    assert rule.source_columns == ("topic", "payload", "qos", "client_id")
    assert rule.filters == ("a/+", "b")
    last = compile_rule("SELECT last_value(qos) AS q, user_property('u') AS u FROM \"a\" GROUP BY user_property('u')")
    assert set(last.source_columns) == {"topic", "qos", "user_properties", "published_at", "partition", "offset"}


def test_output_modes() -> None:
    assert compile_rule('SELECT topic FROM "a"').output_mode == "append"
    assert compile_rule('SELECT topic, count(*) AS n FROM "a" GROUP BY topic').output_mode == "update"
    window = compile_rule("SELECT count(*) AS n FROM \"a\" GROUP BY window(published_at, '90 seconds')")
    assert (window.output_mode, window.watermark) == ("append", WATERMARK_DEFAULT)
    assert "window(published_at, '90 seconds')" in window.query_sql("b")
    given = compile_rule(
        "SELECT count(*) AS n FROM \"a\" GROUP BY window(published_at, '1 day') WATERMARK '120 seconds'"
    )
    assert given.watermark == "2 minutes"


def test_a_text_that_looks_like_the_views_name() -> None:
    rule = compile_rule("SELECT '`__base` __payload {0} %s' AS x FROM \"a\"")
    assert rule.query_sql("v") == "SELECT '`__base` __payload {0} %s' AS `x` FROM `v`"
