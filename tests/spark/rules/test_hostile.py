"""SQL that reaches for something else than messages: refused before Spark sees anything, each with a place."""

from __future__ import annotations

import pytest

from brookmq.spark.rules import RuleError, compile_rule

HOSTILE = [
    # other sources: files, tables, catalogues, table functions
    "SELECT * FROM parquet.`/etc/passwd`",
    'SELECT * FROM "text"."/etc/passwd"',
    "SELECT * FROM csv.'/etc/passwd'",
    "SELECT * FROM spark_catalog.default.users",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM range(1000000000)",
    'SELECT * FROM read_files("/etc/passwd")',
    'SELECT * FROM "a" JOIN "b" ON 1 = 1',
    'SELECT * FROM "a" CROSS JOIN users',
    'SELECT * FROM "a", users',
    'SELECT * FROM "a", LATERAL explode(array(1))',
    'SELECT * FROM "a" TABLESAMPLE (10 PERCENT)',
    "SELECT * FROM VALUES (1, 2)",
    "TABLE users",
    # subqueries and set operations
    'SELECT (SELECT max(password) FROM users) AS x FROM "a"',
    'SELECT topic FROM (SELECT * FROM "a")',
    'SELECT topic FROM "a" WHERE topic IN (SELECT name FROM users)',
    'SELECT topic FROM "a" WHERE EXISTS (SELECT 1 FROM users)',
    'SELECT topic FROM "a" UNION ALL SELECT password FROM users',
    'SELECT topic FROM "a" EXCEPT SELECT 1',
    'WITH x AS (SELECT 1) SELECT topic FROM "a"',
    # several statements, other statements
    'SELECT topic FROM "a"; DROP TABLE users',
    'SELECT topic FROM "a";;',
    'SELECT topic FROM "a"; SET spark.sql.ansi.enabled = false',
    "DROP TABLE users",
    "CREATE TABLE x AS SELECT 1",
    "INSERT INTO users VALUES (1)",
    "SET spark.sql.variable.substitute = true",
    "ADD JAR '/tmp/evil.jar'",
    "CREATE FUNCTION f AS 'evil.Class'",
    "EXPLAIN SELECT 1",
    "SHOW TABLES",
    # functions that call code, read the environment or wait
    "SELECT reflect('java.lang.System', 'getenv', 'HOME') AS x FROM \"a\"",
    "SELECT java_method('java.lang.Runtime', 'getRuntime') AS x FROM \"a\"",
    "SELECT try_reflect('java.lang.System', 'exit', 0) AS x FROM \"a\"",
    'SELECT input_file_name() AS x FROM "a"',
    'SELECT current_user() AS x FROM "a"',
    "SELECT raise_error('stop') AS x FROM \"a\"",
    'SELECT assert_true(false) AS x FROM "a"',
    'SELECT transform(array(1), x -> x + 1) AS x FROM "a"',
    'SELECT spark_partition_id() AS x FROM "a"',
    "SELECT from_json(payload, 'a int') AS x FROM \"a\"",
    "SELECT system.builtin.reflect('java.lang.System', 'exit') AS x FROM \"a\"",
    "SELECT \"reflect\"('java.lang.System', 'exit') AS x FROM \"a\"",
    "SELECT ai_query('model', topic) AS x FROM \"a\"",
    # clauses and operators that rules do not have
    'SELECT topic FROM "a" ORDER BY topic',
    'SELECT topic FROM "a" LIMIT 1',
    'SELECT count(*) OVER (PARTITION BY topic) AS n FROM "a"',
    'SELECT count(*) FILTER (WHERE qos > 0) AS n FROM "a"',
    'SELECT topic INTO x FROM "a"',
    'SELECT /*+ BROADCAST(a) */ topic FROM "a"',
    'SELECT topic /* hidden */ FROM "a"',
    'SELECT topic FROM "a" /* open',
    'SELECT topic FROM "a" {# template #}',
    'SELECT {{ secret }} AS x FROM "a"',
    'SELECT ${env:HOME} AS x FROM "a"',
    'SELECT topic AS "${env:HOME}" FROM "a"',
    'SELECT topic AS `x` FROM "a"',
    'SELECT @@version AS x FROM "a"',
    'SELECT :parameter AS x FROM "a"',
    'SELECT ? AS x FROM "a"',
    'SELECT topic COLLATE UTF8_LCASE AS x FROM "a"',
    "SELECT payload -> 'a' AS x FROM \"a\"",
    'SELECT payload:temp AS x FROM "a"',
    "SELECT x'41' AS x FROM \"a\"",
    'SELECT __payload AS x FROM "a"',
    'SELECT payload[\'a"].b\'] AS x FROM "a"',
    "SELECT topic FROM \"a\" WHERE topic LIKE 'a\\'",
    'SELECT repeat(topic, 1000000000) AS x FROM "a"',
    'SELECT CAST(topic AS STRUCT<a: INT>) AS x FROM "a"',
    'SELECT date_format(published_at, payload.pattern) AS x FROM "a"',
    'SELECT regexp_like(topic, payload.pattern) AS x FROM "a"',
    'SELECT topic\x00 FROM "a"',
    'SELECT topic\u0000FROM "a"',
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_sql_is_refused(text: str) -> None:
    with pytest.raises(RuleError) as caught:
        compile_rule(text)
    assert caught.value.line >= 1
    assert 1 <= caught.value.column <= len(text) + 1


def test_there_are_enough() -> None:
    assert len(set(HOSTILE)) >= 60


@pytest.mark.parametrize(
    "text",
    ["'; DROP TABLE users; --", "\\'; DROP", "${env:HOME}", "$${spark.app.name}", "a\nb", "`x`", "' || '", "\\u0027"],
)
def test_a_text_stays_a_text(text: str) -> None:
    quoted = text.replace("'", "''")
    sql = compile_rule(f"SELECT '{quoted}' AS x FROM \"{'a'}\"").query_sql("base")
    literal = sql.removeprefix("SELECT ").removesuffix(" AS `x` FROM `base`")
    assert literal[0] == literal[-1] == "'"
    inner = literal[1:-1].replace("\\\\", "").replace("\\'", "")
    assert "'" not in inner
    assert "${" not in sql


def test_a_filter_stays_a_text() -> None:
    sql = compile_rule('SELECT topic FROM "a\'; DROP TABLE x/${env:HOME}/+"').base_sql("m")
    assert "${" not in sql
    assert "a\\'; DROP" in sql
