"""Rows in a real PostgreSQL, once each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import StructType

from brookmq.base.rule_documents import parse_action, parse_resource
from brookmq.spark.actions import Action, ActionError, make_action, postgresql
from brookmq.spark.actions.postgresql import connection_uri
from brookmq.spark.actions.postgresql_columns import sql_columns
from tests.spark.actions import dying
from tests.spark.actions.frames import NODE, QUERY, ROWS, key, rows
from tests.spark.actions.postgresql_server import PASSWORD, Server, running_server

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with running_server() as server:
        yield server


@pytest.fixture
def server(running: Server) -> Server:
    """With an empty database."""
    running.do("DROP SCHEMA IF EXISTS plant CASCADE", "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    return running


def action_for(server: Server, frame: DataFrame, table: str = "readings") -> Action:
    resource = parse_resource(
        {"type": "postgresql", "name": "db", "settings": {"uri": server.uri, "password": PASSWORD}}
    )
    document = parse_action({"type": "postgresql", "resource": "db", "table": table})
    return make_action(document, {"db": resource}, NODE, frame.schema)


def write(server: Server, frame: DataFrame, batch: int = 0, query: str = QUERY, table: str = "readings") -> int:
    action = action_for(server, frame, table)
    try:
        return action.write(frame, key(batch, query))
    finally:
        action.close()


def numbers(server: Server, table: str = "readings") -> list[int]:
    found: list[int] = server.rows(f"SELECT number FROM {table} ORDER BY number")["number"].to_pylist()
    return found


def types(server: Server, table: str = "readings") -> dict[str, str]:
    sql = "SELECT attname::text AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute"
    found = server.rows(f"{sql} WHERE attrelid = '{table}'::regclass AND attnum > 0").to_pylist()
    return {row["name"]: row["type"] for row in found}


def test_a_table_is_made_with_the_types_of_the_rule(spark: SparkSession, server: Server) -> None:
    columns = {
        "number": "id", "small": "cast(id AS int)", "t": "id / 10D", "single": "cast(0.5 AS float)", "yes": "id > 5",
        "text": "'grün'", "bytes": "X'00FF'", "day": "DATE '2026-01-31'", "at": "timestamp_micros(1769903999999999)",
        "exact": "cast('12.50' AS decimal(10,2))", "json": "parse_json('{\"a\": [1, null]}')",
        "list": "array(1, NULL)", "record": "named_struct('x', timestamp_micros(1))", "nothing": "NULL",
    }  # fmt: skip
    frame = rows(spark, 0, **columns)
    assert write(server, frame) == ROWS

    assert types(server) == {
        "number": "bigint", "small": "integer", "t": "double precision", "single": "real", "yes": "boolean",
        "text": "text", "bytes": "bytea", "day": "date", "at": "timestamp with time zone", "exact": "numeric(10,2)",
        "json": "jsonb", "list": "jsonb", "record": "jsonb", "nothing": "text",
    }  # fmt: skip
    (row,) = server.rows(
        "SELECT number, small, t, single, yes, text, bytes, day, (extract(epoch FROM at) * 1000000)::int8 AS at, "
        "exact::text AS exact, "
        "json -> 'a' ->> 0 AS json, list::text AS list, record ->> 'x' AS record, nothing "
        "FROM readings WHERE number = 9"
    ).to_pylist()
    assert row == {
        "number": 9, "small": 9, "t": 0.9, "single": 0.5, "yes": True, "text": "grün", "bytes": b"\x00\xff",
        "day": date(2026, 1, 31), "at": 1769903999999999, "exact": str(Decimal("12.50")),
        "json": "1", "list": "[1, null]", "record": "1970-01-01T00:00:00.000001Z", "nothing": None,
    }  # fmt: skip


def test_a_batch_that_comes_again_is_written_once(spark: SparkSession, server: Server) -> None:
    frame = rows(spark)
    action = action_for(server, frame)
    assert action.write(frame, key(0)) == ROWS
    assert action.write(frame, key(0)) == 0
    action.close()
    assert write(server, frame) == 0
    assert write(server, rows(spark, 1), 1) == ROWS
    assert write(server, rows(spark, 2), 0, "another query") == ROWS
    assert numbers(server) == list(range(3 * ROWS))
    assert server.rows("SELECT batch FROM brookmq_batches ORDER BY batch")["batch"].to_pylist() == [0, 1]


def test_two_tables_of_one_rule_have_their_own_batches(spark: SparkSession, server: Server) -> None:
    frame = rows(spark)
    assert write(server, frame) == ROWS
    assert write(server, frame, table="others") == ROWS


@pytest.mark.parametrize("point", dying.SQL_POINTS)
def test_a_process_that_dies_leaves_each_row_there_once(server: Server, point: str) -> None:
    document = {
        "type": "postgresql",
        "uri": connection_uri(server.uri, PASSWORD),
        "table": "readings",
    }
    with dying.mortals() as processes:
        assert processes.write(document, 0) == dying.ROWS
        processes.write(document, 1, point)
        assert numbers(server) == list(range(dying.ROWS * (1 if point == "inserted" else 2)))
        assert processes.write(document, 1) == (dying.ROWS if point == "inserted" else 0)
    assert numbers(server) == list(range(2 * dying.ROWS))


def test_two_pipelines_at_once_write_a_batch_once(spark: SparkSession, server: Server) -> None:
    frame = rows(spark)
    one, other = action_for(server, frame), action_for(server, frame)
    one.write(frame, key(0))
    other.write(frame, key(0))
    together = threading.Barrier(2)
    before = postgresql.PostgresqlInserter._insert
    counts: list[int] = []

    def insert(self: Any, *arguments: Any) -> int:
        together.wait(60)  # both have asked, and neither has found the batch
        return before(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgresql.PostgresqlInserter, "_insert", insert)
        frame = rows(spark, 1)
        threads = [
            threading.Thread(target=lambda action=action: counts.append(action.write(frame, key(1))))
            for action in (one, other)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    one.close()
    other.close()
    assert sorted(counts) == [0, ROWS]
    assert numbers(server) == list(range(2 * ROWS))


def test_a_users_own_table_keeps_its_keys_defaults_and_types(spark: SparkSession, server: Server) -> None:
    server.do(
        "CREATE TABLE readings (id bigserial PRIMARY KEY, number numeric, topic varchar(20), t real, reading json, "
        "seen timestamptz DEFAULT now())"
    )
    assert write(server, rows(spark, 0, "number", "topic", "t", "reading", "published_at")) == ROWS
    assert types(server)["published_at"] == "timestamp with time zone"
    (row,) = server.rows(
        "SELECT id::int4 AS id, number::int4 AS number, reading ->> 't' AS t, seen IS NOT NULL AS seen "
        "FROM readings WHERE number = 99"
    ).to_pylist()
    assert (row["number"], row["t"], row["seen"]) == (99, "99", True)
    assert 1 <= row["id"] <= ROWS


def test_a_column_of_another_type_is_an_error_and_nothing_is_written(spark: SparkSession, server: Server) -> None:
    server.do("CREATE TABLE readings (number bigint, topic integer)")
    frame = rows(spark, 0, "number", "topic")
    with pytest.raises(ActionError, match=r'PostgreSQL table readings at localhost: .*column "topic" is of type'):
        write(server, frame)
    assert numbers(server) == []
    server.do("ALTER TABLE readings ALTER COLUMN topic TYPE text")
    assert write(server, frame) == ROWS


def test_schemas_are_made_and_used(spark: SparkSession, server: Server) -> None:
    assert write(server, rows(spark), table="plant.readings") == ROWS
    assert numbers(server, "plant.readings") == list(range(ROWS))
    assert server.rows("SELECT target FROM plant.brookmq_batches")["target"].to_pylist() == ["readings"]


def test_rights_to_insert_are_enough_where_all_is_there(spark: SparkSession, server: Server) -> None:
    frame = rows(spark)
    write(server, frame)
    server.do(
        "DROP ROLE IF EXISTS writer",
        f"CREATE ROLE writer LOGIN PASSWORD '{PASSWORD}'",
        "GRANT USAGE ON SCHEMA public TO writer",
        "GRANT INSERT ON readings TO writer",
        "GRANT SELECT, INSERT, UPDATE ON brookmq_batches TO writer",
    )
    document = parse_action(
        {
            "type": "postgresql",
            "uri": connection_uri(server.uri.replace("brook@", "writer@"), PASSWORD),
            "table": "readings",
        }
    )
    action = make_action(document, {}, NODE, frame.schema)
    assert action.write(rows(spark, 1), key(1)) == ROWS
    action.close()
    server.do("DROP OWNED BY writer", "DROP ROLE writer")


def test_null_characters_are_left_out(spark: SparkSession, server: Server) -> None:
    frame = rows(
        spark,
        0,
        number="id",
        text="concat('a', char(0), 'b')",
        json=r"""parse_json('{"k\\u0000": "x\\u0000y", "slash": "\\\\u0000"}')""",
        list="array(concat('p', char(0), 'q'))",
    )
    assert write(server, frame) == ROWS
    (row,) = server.rows(
        "SELECT text, json ->> 'k' AS k, json ->> 'slash' AS slash, list ->> 0 AS list FROM readings LIMIT 1"
    ).to_pylist()
    assert row == {"text": "ab", "k": "xy", "slash": r"\u0000", "list": "pq"}


def test_a_server_that_was_restarted_between_batches_is_found_again(spark: SparkSession, server: Server) -> None:
    frame = rows(spark)
    action = action_for(server, frame)
    action.write(frame, key(0))
    server.restart()
    assert action.write(rows(spark, 1), key(1)) == ROWS
    action.close()
    assert numbers(server) == list(range(2 * ROWS))


def test_a_server_that_is_gone_is_an_error_without_the_password(spark: SparkSession, server: Server) -> None:
    frame = rows(spark)
    action = action_for(server, frame)
    server.stop()
    try:
        with pytest.raises(ActionError, match="PostgreSQL table readings at localhost") as raised:
            action.write(frame, key(0))
    finally:
        server.start()
    assert PASSWORD not in str(raised.value)
    assert action.write(frame, key(0)) == ROWS
    action.close()


def test_a_wrong_password_is_told(spark: SparkSession, server: Server) -> None:
    frame = rows(spark)
    document = parse_action({"type": "postgresql", "uri": f"{server.uri}&password=guess", "table": "readings"})
    action = make_action(document, {}, NODE, frame.schema)
    with pytest.raises(ActionError, match="password authentication failed") as raised:
        action.write(frame, key(0))
    action.close()
    assert "guess" not in str(raised.value)


def test_a_batch_without_rows_is_no_batch(spark: SparkSession, server: Server) -> None:
    assert write(server, rows(spark).where("number < 0")) == 0
    assert numbers(server) == []


def test_what_goes_wrong_with_the_rows_is_not_the_databases_fault(spark: SparkSession, server: Server) -> None:
    from pyspark.errors import PySparkException

    broken = rows(spark, 0, "number", bad="if(id = 70, raise_error('the journal is gone'), 1)")
    action = action_for(server, broken)
    with pytest.raises(PySparkException, match="the journal is gone"):
        action.write(broken, key())
    assert action.write(rows(spark, 0, "number", bad="1"), key()) == ROWS
    action.close()


def test_names_that_postgresql_would_cut_are_refused() -> None:
    schema = StructType().add("ä" * 32, "string")
    with pytest.raises(ActionError, match="63 bytes at most"):
        sql_columns(schema, "table")


def test_settings_in_the_address_win() -> None:
    assert connection_uri("postgresql://h/d?connect_timeout=3", "p w&").startswith(
        "postgresql://h/d?connect_timeout=3&application_name=brookmq&tcp_user_timeout="
    )
    assert connection_uri("postgresql://h/d", "p w&").endswith("&password=p%20w%26")
