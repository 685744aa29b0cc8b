"""What a rule can be, and what its author is told when it is something else."""

from __future__ import annotations

import pytest

from brookmq.spark.rules import RuleError, nodes
from brookmq.spark.rules.checking import DEPTH_MAX
from brookmq.spark.rules.parsing import COLUMNS_MAX, FILTERS_MAX, parse_rule
from brookmq.spark.rules.tokens import NESTING_MAX, TEXT_CHARACTERS_MAX, TOKENS_MAX


def parsed(expression: str) -> nodes.Node:
    return parse_rule(f'SELECT {expression} AS x FROM "t"').columns[0].expression


def refused(text: str) -> RuleError:
    with pytest.raises(RuleError) as caught:
        parse_rule(text)
    return caught.value


def test_all_clauses_of_select() -> None:
    rule = parse_rule(
        'SELECT topic, avg(payload.t) AS mean FROM "a/+", "b/#" WHERE qos > 0 '
        "GROUP BY window(published_at, '1 minute'), topic HAVING mean > 3 WATERMARK '5 seconds';"
    )
    assert [filter.filter for filter in rule.filters] == ["a/+", "b/#"]
    assert [column.alias for column in rule.columns] == [None, "mean"]
    assert rule.where == nodes.Binary(0, ">", nodes.Name(0, "qos"), nodes.Number(0, "0"))
    assert len(rule.group) == 2
    assert rule.having is not None
    assert rule.watermark == nodes.Text(0, "5 seconds")
    assert rule.foreach is None


def test_all_clauses_of_foreach() -> None:
    rule = parse_rule('FOREACH payload.items AS i DO i.name, topic INCASE i.ok FROM "a" WHERE qos = 1')
    assert rule.foreach is not None
    assert rule.foreach.name == "i"
    assert rule.foreach.items == nodes.Access(0, nodes.Name(0, "payload"), "items")
    assert rule.foreach.condition == nodes.Access(0, nodes.Name(0, "i"), "ok")
    assert len(rule.columns) == 2


def test_foreach_alone_gives_the_item() -> None:
    rule = parse_rule('FOREACH payload.items FROM "a"')
    assert rule.columns[0].expression == nodes.Name(0, "item")


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("payload.temp", ["temp"]),
        ("payload.items[0].name", ["items", 0, "name"]),
        ("payload.a.b.c.d.e.f", ["a", "b", "c", "d", "e", "f"]),
        ("payload['a b']", ["a b"]),
        ('payload["a b"].c', ["a b", "c"]),
        ('payload."a b"', ["a b"]),
        ("payload[1][2]", [1, 2]),
        ("payload.select", ["select"]),
        ("payload.order.from.limit", ["order", "from", "limit"]),
        ("payload.case.end.timestamp", ["case", "end", "timestamp"]),
        ("payload . temp", ["temp"]),
    ],
)
def test_paths(path: str, keys: list[str | int]) -> None:
    node = parsed(path)
    found: list[str | int] = []
    while isinstance(node, nodes.Access):
        found.insert(0, node.key)
        node = node.base
    assert node == nodes.Name(0, "payload")
    assert found == keys


@pytest.mark.parametrize(
    "expression",
    [
        "CASE WHEN qos = 1 THEN 'a' ELSE 'b' END",
        "CASE qos WHEN 1 THEN 'a' END",
        "CAST(payload.a AS DOUBLE)",
        "payload.a::bigint",
        "payload.a IS NOT NULL AND NOT payload.b IS NULL",
        "payload.a NOT IN (1, 2)",
        "payload.a BETWEEN 1 AND 2",
        "topic LIKE 'a%' OR topic NOT RLIKE '^b'",
        "-payload.a + 1.5e3 * (2 - 3) / 4 % 5",
        "published_at - INTERVAL '5' MINUTE",
        "published_at - INTERVAL 1 DAY",
        "'it''s' || topic",
        "left(replace(topic, 'a', 'b'), 2)",
        "if(retain, 1, 2)",
        "payload.ok IS TRUE",
    ],
)
def test_expressions(expression: str) -> None:
    assert parsed(expression)


@pytest.mark.parametrize("name", ["partition", "offset", "timestamp", "limit", "order", "table", "window", "format"])
def test_words_of_other_statements_are_names_behind_as(name: str) -> None:
    assert parse_rule(f'SELECT topic AS {name} FROM "t"').columns[0].alias == name


def test_line_comments_and_line_ends() -> None:
    rule = parse_rule('-- what is hot\nSELECT topic -- it\'s "here"\r\n\tFROM "a"\n-- end')
    assert len(rule.columns) == 1


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("", 1, 1, "empty"),
        ("   \n ", 1, 1, "empty"),
        ("UPDATE x", 1, 1, "UPDATE is not allowed"),
        ("topic", 1, 1, "begins with SELECT or FOREACH"),
        ("SELECT topic", 1, 13, "FROM is missing"),
        ("SELECT topic\nFROM sensors", 2, 6, "double quotes"),
        ("SELECT topic FROM 'sensors'", 1, 19, "double quotes"),
        ('SELECT topic FROM "a" AS t', 1, 23, "commas in between"),
        ('SELECT topic FROM "a/#/b"', 1, 19, "topic filter"),
        ('SELECT topic FROM "a+/b"', 1, 19, "topic filter"),
        ('SELECT topic FROM ""', 1, 19, "topic filter"),
        ('SELECT topic FROM "$share/g/a"', 1, 19, "shared"),
        ('SELECT topic,, qos FROM "a"', 1, 14, "before this comma"),
        ('SELECT topic, FROM "a"', 1, 13, "after this"),
        ('SELECT FROM "a"', 1, 1, "nothing follows SELECT"),
        ('SELECT topic FROM "a" WHERE', 1, 23, "nothing follows WHERE"),
        ('SELECT topic FROM "a" WHERE qos >', 1, 33, "ends too early"),
        ('SELECT topic FROM "a" WHERE (qos > 1', 1, 36, "cannot be read"),
        ('SELECT topic FROM "a" WHERE qos > 1)', 1, 36, "ends too early"),
        ('SELECT topic\nFROM "a"\nWHERE qos == == 1', 3, 14, "cannot be read"),
        ('SELECT topic name FROM "a"', 1, 14, "AS is missing"),
        ('SELECT topic AS __x FROM "a"', 1, 17, "not a name"),
        ('SELECT topic AS "a;b" FROM "a"', 1, 17, "not a name"),
        ('SELECT\n  uppercase(topic) FROM "a"', 2, 3, "no function uppercase"),
        ('SELECT topic FROM "a" HAVING qos WHERE qos', 1, 34, "cannot stand here"),
        ('SELECT topic FROM "a" WHERE qos WHERE qos', 1, 33, "cannot stand here"),
        ('SELECT topic FROM "a" DO qos', 1, 23, "commas in between"),
        ('SELECT \'open FROM "a"', 1, 8, "cannot be read"),
        ('SELECT DISTINCT topic FROM "a"', 1, 8, "DISTINCT"),
        ('SELECT count(DISTINCT topic) FROM "a"', 1, 23, "distinct"),
        ('SELECT payload[qos] FROM "a"', 1, 16, "one constant"),
        ('SELECT payload[1.5] FROM "a"', 1, 16, "item's number"),
        ('SELECT payload.* FROM "a"', 1, 16, "not a name"),
        ('SELECT (topic, qos) AS x FROM "a"', 1, 9, "not allowed here"),
        ('SELECT CAST(qos AS DECIMAL(3, 1)) AS x FROM "a"', 1, 13, "not for CAST"),
        ('SELECT topic LIKE qos AS x FROM "a"', 1, 19, "pattern of LIKE"),
        ('SELECT 1_000 AS x FROM "a"', 1, 14, "cannot be read"),
        ('SELECT 1e999 AS x FROM "a"', 1, 8, "not a number"),
        ('SELECT published_at + INTERVAL 40000 DAY AS x FROM "a"', 1, 23, "at most a century"),
        ('SELECT published_at + INTERVAL 1 YEAR AS x FROM "a"', 1, 23, "not an interval"),
        ('SELECT topic FROM "a" WATERMARK 5', 1, 33, "duration"),
    ],
)
def test_refusals_name_the_first_character(text: str, line: int, column: int, part: str) -> None:
    error = refused(text)
    assert part in error.message
    assert (error.line, error.column) == (line, column)
    assert str(error).startswith(f"line {line}, column {column}: ")


def test_hints() -> None:
    assert refused('SELECT uper(topic) FROM "a"').hint == "did you mean upper?"
    assert 'FROM "' in refused("SELECT topic FROM a").hint


def test_limits() -> None:
    def text_of(length: int) -> str:
        start, end = "SELECT topic -- ", '\nFROM "a"'
        return start + "x" * (length - len(start) - len(end)) + end

    assert parse_rule(text_of(TEXT_CHARACTERS_MAX))
    assert "longer than" in refused(text_of(TEXT_CHARACTERS_MAX + 1)).message

    columns = [f"qos AS c{number}" for number in range(COLUMNS_MAX + 1)]
    assert len(parse_rule(f'SELECT {", ".join(columns[:-1])} FROM "a"').columns) == COLUMNS_MAX
    assert "columns" in refused(f'SELECT {", ".join(columns)} FROM "a"').message

    filters = [f'"a/{number}"' for number in range(FILTERS_MAX + 1)]
    assert len(parse_rule(f"SELECT qos FROM {', '.join(filters[:-1])}").filters) == FILTERS_MAX
    assert "topic filters" in refused(f"SELECT qos FROM {', '.join(filters)}").message

    assert parsed("(" * NESTING_MAX + "qos" + ")" * NESTING_MAX)
    error = refused("SELECT " + "(" * (NESTING_MAX + 1) + "qos" + ")" * (NESTING_MAX + 1) + ' FROM "a"')
    assert error.column == len("SELECT ") + NESTING_MAX + 1

    assert parsed("+".join(["1"] * DEPTH_MAX))
    assert "inside each other" in refused(f'SELECT {"+".join(["1"] * (DEPTH_MAX + 1))} AS x FROM "a"').message
    assert "words and symbols" in refused(f'SELECT qos IN ({",".join(["1"] * TOKENS_MAX)}) AS x FROM "a"').message


@pytest.mark.parametrize(
    "chain", ["NOT " * 700 + "retain", "- " * 700 + "qos", "qos = NOT " * 400 + "qos", "CASE WHEN " * 40 + "qos"]
)
def test_chains_that_would_exhaust_the_stack(chain: str) -> None:
    assert refused(f'SELECT {chain} AS x FROM "a"')
