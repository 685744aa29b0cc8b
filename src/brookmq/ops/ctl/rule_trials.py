"""Commands that look at a rule, or try it, without keeping anything."""

from __future__ import annotations

import json
from typing import IO, Any

import click

from brookmq.ops.ctl.connection import SLOW_ANSWER_WAIT_S, Node, segment
from brookmq.ops.ctl.documents import pointing_out
from brookmq.ops.ctl.options import node_options
from brookmq.ops.ctl.output import Column, print_json, print_listing

PATH = "/rules"
COLUMNS: tuple[Column, ...] = (("column", lambda row: row["name"]), ("type", lambda row: row["type"]))


def sql_options(command: Any) -> Any:
    """``--sql`` and ``--sql-file``."""
    command = click.option("--sql-file", default=None, type=click.File("r"), help="The SQL in a file; - is stdin.")(
        command
    )
    return click.option("--sql", default=None, metavar="TEXT", help="The SQL.")(command)


def sql_text(sql: str | None, sql_file: IO[str] | None) -> str | None:
    if sql is not None and sql_file is not None:
        raise click.UsageError("give --sql or --sql-file, and not both")
    return sql if sql_file is None else sql_file.read()


@click.command(name="check")
@sql_options
@click.option("--schema", default=None, metavar="NAME", help="The schema of the payloads.")
@node_options
def check_rule(node: Node, as_json: bool, sql: str | None, sql_file: IO[str] | None, schema: str | None) -> None:
    """Say which columns come out of a rule, or what is wrong with it, and where.

    \b
    Example:
      brookmq ctl rules check --sql 'SELECT payload.temp AS t FROM "sensors/#"'
    """
    text = sql_text(sql, sql_file)
    if text is None:
        raise click.UsageError("give the SQL with --sql or --sql-file")
    with pointing_out(text):
        found = node.request("POST", f"{PATH}/check", body={"sql": text, "schema": schema}, wait_s=SLOW_ANSWER_WAIT_S)
    if as_json:
        print_json(found)
    else:
        print_listing(found["columns"], COLUMNS, limit=None, as_json=False)


def _messages(_context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> list[dict[str, Any]]:
    for text in texts:
        if "=" not in text:
            raise click.BadParameter(f"{text!r} is not TOPIC=PAYLOAD")
    return [dict(zip(("topic", "payload"), text.split("=", 1), strict=True)) for text in texts]


@click.command(name="test")
@click.argument("name", required=False)
@sql_options
@click.option("--schema", default=None, metavar="NAME", help="The schema of the payloads.")
@click.option(
    "-m",
    "--message",
    "messages",
    multiple=True,
    callback=_messages,
    metavar="TOPIC=PAYLOAD",
    help="A message; may be repeated.",
)
@click.option(
    "--messages",
    "messages_file",
    default=None,
    type=click.File("r"),
    help='Messages as lines of JSON, such as {"topic": "a", "payload": {"temp": 1}, "client_id": "c"}; - is stdin.',
)
@node_options
def test_rule(
    node: Node,
    as_json: bool,
    name: str | None,
    sql: str | None,
    sql_file: IO[str] | None,
    schema: str | None,
    messages: list[dict[str, Any]],
    messages_file: IO[str] | None,
) -> None:
    """Try a rule on sample messages and print the rows that come out: the rule NAME, or SQL that is not kept.

    \b
    Examples:
      brookmq ctl rules test hot -m 'sensors/1={"temp": 31}' -m 'sensors/2={"temp": 12}'
      brookmq ctl rules test --sql-file hot.sql --messages samples.jsonl
    """
    text = sql_text(sql, sql_file)
    if (name is None) == (text is None):
        raise click.UsageError("give the name of a rule, or SQL")
    if name is not None:
        rule = node.get(f"{PATH}/{segment(name)}")
        text, schema = rule["sql"], schema or rule["schema"]
    samples = messages + _lines(messages_file)
    if not samples:
        raise click.UsageError("give messages with --message or --messages")
    with pointing_out(text or ""):
        body = {"sql": text, "schema": schema, "messages": samples}
        found = node.request("POST", f"{PATH}/test", body=body, wait_s=SLOW_ANSWER_WAIT_S)
    if as_json:
        print_json(found)
        return
    columns = [(column["name"], _cell(column["name"])) for column in found["columns"]]
    print_listing(found["rows"], columns, limit=None, as_json=False)
    click.echo(
        f"{found['matched']} of {len(samples)} messages matched, {found['failed']} could not be decoded", err=True
    )


def _cell(name: str) -> Any:
    def value(row: Any) -> object:
        found = row.get(name)
        return json.dumps(found, ensure_ascii=False) if isinstance(found, dict | list) else found

    return value


def _lines(file: IO[str] | None) -> list[dict[str, Any]]:
    found = []
    for number, line in enumerate(file or (), 1):
        if line.strip():
            try:
                message = json.loads(line)
            except ValueError as error:
                raise click.UsageError(f"--messages: line {number} is not JSON: {error}") from None
            found.append(message)
    return found
