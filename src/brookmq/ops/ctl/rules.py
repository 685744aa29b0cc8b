"""Commands about rules."""

from __future__ import annotations

import json
from typing import IO, Any

import click

from brookmq.ops.ctl.connection import Node, segment
from brookmq.ops.ctl.documents import (
    delete,
    document,
    file_option,
    json_objects,
    put,
    replace_option,
    switch,
)
from brookmq.ops.ctl.options import node_options
from brookmq.ops.ctl.output import Column, moment_of, print_facts, print_json, print_listing
from brookmq.ops.ctl.rule_trials import PATH, check_rule, sql_options, sql_text, test_rule


def figure(row: Any, name: str) -> object:
    """A figure that a pipeline has told; None where there is none."""
    return None if row["statistics"] is None else row["statistics"][name]


def state(row: Any) -> str:
    """What it does, and why if that has a reason."""
    return row["state"] if row["message"] is None else f"{row['state']}: {row['message']}"


COLUMNS: tuple[Column, ...] = (
    ("rule", lambda row: row["name"]),
    ("state", state),
    ("matched", lambda row: figure(row, "matched")),
    ("passed", lambda row: figure(row, "passed")),
    ("failed", lambda row: figure(row, "failed")),
    ("lag", lambda row: figure(row, "lag")),
)


@click.group()
def rules() -> None:
    """Write, try, watch and delete rules: SQL over messages as they come.

    \b
    Examples:
      brookmq ctl rules test --sql 'SELECT payload.temp AS t FROM "sensors/#"' -m 'sensors/1={"temp": 31}'
      brookmq ctl rules create hot --sql-file hot.sql --action '{"type": "delta", "path": "tables/hot"}'
      brookmq ctl rules list
    """


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
            "state": state(found),
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
@sql_options
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
        "sql": sql_text(sql, sql_file),
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


rules.add_command(check_rule)
rules.add_command(test_rule)
