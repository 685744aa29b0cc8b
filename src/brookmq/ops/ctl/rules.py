"""Commands about rules."""

from __future__ import annotations

import json
from typing import IO, Any

import click

from brookmq.ops.ctl.connection import SLOW_ANSWER_WAIT_S, Node, segment
from brookmq.ops.ctl.documents import (
    delete,
    document,
    file_option,
    json_objects,
    pointing_out,
    put,
    replace_option,
    switch,
)
from brookmq.ops.ctl.options import node_options
from brookmq.ops.ctl.output import Column, moment_of, print_facts, print_json, print_listing

PATH = "/rules"


def figure(row: Any, name: str) -> object:
    """A figure that a pipeline has told; None where there is none."""
    return None if row["statistics"] is None else row["statistics"][name]


COLUMNS: tuple[Column, ...] = (
    ("rule", lambda row: row["name"]),
    ("state", lambda row: row["state"]),
    ("matched", lambda row: figure(row, "matched")),
    ("passed", lambda row: figure(row, "passed")),
    ("failed", lambda row: figure(row, "failed")),
    ("lag", lambda row: figure(row, "lag")),
    ("actions", lambda row: " ".join(action["type"] for action in row["actions"])),
    ("message", lambda row: row["message"]),
)
COLUMN_COLUMNS: tuple[Column, ...] = (("column", lambda row: row["name"]), ("type", lambda row: row["type"]))


@click.group()
def rules() -> None:
    """Write, try, watch and delete rules: SQL over messages as they come.

    \b
    Examples:
      brookmq ctl rules test --sql 'SELECT payload.temp AS t FROM "sensors/#"' -m 'sensors/1={"temp": 31}'
      brookmq ctl rules create hot --sql-file hot.sql --action '{"type": "delta", "path": "tables/hot"}'
      brookmq ctl rules list
    """


def _sql_options(command: Any) -> Any:
    """``--sql`` and ``--sql-file``."""
    command = click.option("--sql-file", default=None, type=click.File("r"), help="The SQL in a file; - is stdin.")(
        command
    )
    return click.option("--sql", default=None, metavar="TEXT", help="The SQL.")(command)


def _sql(sql: str | None, sql_file: IO[str] | None) -> str | None:
    if sql is not None and sql_file is not None:
        raise click.UsageError("give --sql or --sql-file, and not both")
    return sql if sql_file is None else sql_file.read()


@rules.command(name="list")
@node_options
def list_rules(node: Node, as_json: bool) -> None:
    """List rules by name: what they do, and how they do.

    \b
    Example:
      brookmq ctl rules list
    """
    print_listing(node.get(PATH), COLUMNS, limit=None, as_json=as_json)


@rules.command(name="show")
@click.argument("name")
@node_options
def show_rule(node: Node, as_json: bool, name: str) -> None:
    """Show one rule with its figures. Passwords and tokens are shown as ******.

    \b
    Examples:
      brookmq ctl rules show hot
      brookmq ctl rules show hot --json > hot.json
    """
    found = node.get(f"{PATH}/{segment(name)}")
    if as_json:
        print_json(found)
        return
    actions = {f"action {number}": _action(action) for number, action in enumerate(found["actions"], 1)}
    statistics = found["statistics"] or {}
    print_facts(
        {
            "rule": found["name"],
            "description": found["description"] or None,
            "sql": " ".join(found["sql"].split()),
            "schema": found["schema"],
            **actions,
            "on action failed": found["on_action_failed"],
            "state": found["state"],
            "message": found["message"],
            **{name.replace("_", " "): value for name, value in statistics.items() if name != "since"},
            "changed at": moment_of(found["changed_at"]),
            "revision": found["revision"],
        }
    )


def _action(action: dict[str, Any]) -> str:
    fallbacks = "".join(f", else {_action(fallback)}" for fallback in action.get("fallbacks", []))
    settings = " ".join(
        f"{key}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in action.items()
        if key not in ("type", "fallbacks") and value not in (None, {}, [])
    )
    return f"{action['type']} {settings}{fallbacks}"


@rules.command(name="create")
@click.argument("name")
@_sql_options
@click.option(
    "--action",
    "actions",
    multiple=True,
    callback=json_objects,
    metavar="JSON",
    help='What to do with the rows, such as \'{"type": "delta", "path": "tables/hot"}\'; may be repeated.',
)
@click.option("--schema", default=None, metavar="NAME", help="The schema of the payloads; without one they are JSON.")
@click.option(
    "--on-action-failed",
    default=None,
    type=click.Choice(["retry", "continue", "stop"]),
    help="When an action and its fallbacks failed; retry if nothing else is said.",
)
@click.option("--disabled", is_flag=True, help="Do not let it run yet.")
@click.option("--description", default=None, metavar="TEXT", help="What it is for.")
@file_option
@replace_option
@node_options
def create_rule(
    node: Node,
    as_json: bool,
    name: str,
    sql: str | None,
    sql_file: IO[str] | None,
    actions: list[dict[str, Any]],
    schema: str | None,
    on_action_failed: str | None,
    disabled: bool,
    description: str | None,
    file: IO[str] | None,
    replace: bool,
) -> None:
    """Write the rule NAME. It is looked at by Spark before it is kept, which has to start for the first one.

    \b
    Examples:
      brookmq ctl rules create hot --sql 'SELECT payload.temp AS t FROM "sensors/#" WHERE payload.temp > 30' \\
        --action '{"type": "delta", "path": "tables/hot"}'
      brookmq ctl rules create hot --file hot.json --replace
    """
    given = {
        "sql": _sql(sql, sql_file),
        "actions": actions or None,
        "schema": schema,
        "on_action_failed": on_action_failed,
        "enabled": False if disabled else None,
        "description": description,
    }
    body = document(file, given)
    if not isinstance(body.get("sql"), str):
        raise click.UsageError("give the SQL with --sql, --sql-file or --file")
    put(node, PATH, name, body, replace=replace, as_json=as_json, sql=body["sql"])


@rules.command(name="check")
@_sql_options
@click.option("--schema", default=None, metavar="NAME", help="The schema of the payloads.")
@node_options
def check_rule(node: Node, as_json: bool, sql: str | None, sql_file: IO[str] | None, schema: str | None) -> None:
    """Say which columns come out of a rule, or what is wrong with it, and where.

    \b
    Example:
      brookmq ctl rules check --sql 'SELECT payload.temp AS t FROM "sensors/#"'
    """
    text = _sql(sql, sql_file)
    if text is None:
        raise click.UsageError("give the SQL with --sql or --sql-file")
    with pointing_out(text):
        found = node.request("POST", f"{PATH}/check", body={"sql": text, "schema": schema}, wait_s=SLOW_ANSWER_WAIT_S)
    if as_json:
        print_json(found)
    else:
        print_listing(found["columns"], COLUMN_COLUMNS, limit=None, as_json=False)


def _messages(_context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> list[dict[str, Any]]:
    for text in texts:
        if "=" not in text:
            raise click.BadParameter(f"{text!r} is not TOPIC=PAYLOAD")
    return [dict(zip(("topic", "payload"), text.split("=", 1), strict=True)) for text in texts]


@rules.command(name="test")
@click.argument("name", required=False)
@_sql_options
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
    text = _sql(sql, sql_file)
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


@rules.command(name="enable")
@click.argument("name")
@node_options
def enable_rule(node: Node, as_json: bool, name: str) -> None:
    """Let a rule run, and say what it does now. It goes on where it was.

    \b
    Example:
      brookmq ctl rules enable hot
    """
    switch(node, PATH, name, enabled=True, as_json=as_json)


@rules.command(name="disable")
@click.argument("name")
@node_options
def disable_rule(node: Node, as_json: bool, name: str) -> None:
    """Let a rule rest.

    \b
    Example:
      brookmq ctl rules disable hot
    """
    switch(node, PATH, name, enabled=False, as_json=as_json)


@rules.command(name="delete")
@click.argument("name")
@node_options
def delete_rule(node: Node, as_json: bool, name: str) -> None:
    """Forget a rule. What it has written stays.

    \b
    Example:
      brookmq ctl rules delete hot
    """
    delete(node, PATH, name, as_json=as_json)
