"""``brookmq ctl rules``, ``schemas``, ``tables`` and ``resources``."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import httpx
from click.testing import CliRunner, Result

from brookmq.ops.ctl import ctl
from tests.ops.memory_node import MemoryNode

SQL = 'SELECT payload.t AS t\nFROM "a/#"'
WRONG = 'SELECT payload.t AS t\nFROM wrong "a/#"'


def run(address: str, *arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(ctl, [*arguments], env={"BROOKMQ_URL": f"http://{address}"}, input=stdin)


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.output


def test_a_rule_lives(address: str, api: httpx.Client, tmp_path: Path) -> None:
    assert json.loads(done(run(address, "rules", "list", "--json"))) == []
    action = '{"type": "delta", "path": "tables/hot", "fallbacks": [{"type": "console"}]}'
    arguments = ("rules", "create", "hot", "--sql", SQL, "--action", action, "--description", "hot rooms")
    assert done(run(address, *arguments)) == "created\n"
    again = run(address, *arguments)
    assert again.exit_code == 2
    assert "hot exists; --replace changes it." in again.output
    assert done(run(address, *arguments, "--on-action-failed", "stop", "--replace")) == "changed\n"
    listed = done(run(address, "rules", "list")).splitlines()
    assert listed[0].split("\t")[:4] == ["rule", "state", "matched", "passed"]
    assert listed[1].split("\t")[:4] == ["hot", "waiting for a pipeline", "-", "-"]
    shown = done(run(address, "rules", "show", "hot"))
    assert 'sql\tSELECT payload.t AS t FROM "a/#"' in shown
    assert "action 1\tdelta path=tables/hot, else console rows=20" in shown
    assert "on action failed\tstop" in shown
    query = {"name": "rule/hot", "state": "running", "matched": 5, "passed": 3}
    told = {"id": str(uuid4()), "master": "m", "application": "a", "started_at": 1.0, "queries": [query]}
    api.put("/api/v1/pipeline/status", json=told)
    assert done(run(address, "rules", "list")).splitlines()[1].split("\t")[:4] == ["hot", "running", "5", "3"]
    assert "matched\t5" in done(run(address, "rules", "show", "hot"))
    told["queries"] = [{**query, "state": "failed", "message": "no disk"}]
    api.put("/api/v1/pipeline/status", json=told)
    assert done(run(address, "rules", "list")).splitlines()[1].split("\t")[:2] == ["hot", "failed: no disk"]
    file = tmp_path / "hot.json"
    file.write_text(done(run(address, "rules", "show", "hot", "--json")))
    copied = run(address, "rules", "create", "copy", "--file", str(file), "--disabled")
    assert done(copied) == "created\n"
    copy = json.loads(done(run(address, "rules", "show", "copy", "--json")))
    assert (copy["sql"], copy["enabled"], copy["on_action_failed"]) == (SQL, False, "stop")
    assert done(run(address, "rules", "enable", "copy")) == "starting\n"
    assert done(run(address, "rules", "disable", "copy")) == "disabled\n"
    assert done(run(address, "rules", "delete", "copy")) == "deleted\n"
    assert json.loads(done(run(address, "rules", "delete", "hot", "--json"))) == {"name": "hot", "deleted": True}
    gone = run(address, "rules", "show", "hot")
    assert (gone.exit_code, "no rule 'hot'" in gone.output) == (1, True)


def test_a_mistake_is_pointed_at(address: str, tmp_path: Path) -> None:
    file = tmp_path / "hot.sql"
    file.write_text(WRONG)
    for arguments in (
        ("create", "hot", "--sql", WRONG),
        ("check", "--sql-file", str(file)),
        ("test", "--sql", WRONG, "-m", "a=1"),
    ):
        result = run(address, "rules", *arguments)
        assert result.exit_code == 1
        assert "the node says: line 2, column 5: what is this?\n\n" in result.output
        assert '\n  FROM wrong "a/#"\n      ^\n' in result.output


def test_rules_are_tried(address: str, memory_node: MemoryNode) -> None:
    assert done(run(address, "rules", "check", "--sql", SQL)).splitlines() == [
        "column\ttype",
        "t\tdouble",
        "room\tstring",
    ]
    result = run(address, "rules", "test", "--sql", SQL, "-m", 'a/1={"t": "x=y"}', "-m", "a/2=")
    assert done(result).splitlines()[:2] == ["t\troom", "1.5\thall"]
    assert "2 of 2 messages matched, 0 could not be decoded" in result.output
    asked = memory_node.kept_rules.checker.asked
    assert [message["topic"] for message in asked[-1]["messages"]] == ["a/1", "a/2"]
    done(run(address, "schemas", "create", "reading", "--kind", "text"))
    done(run(address, "rules", "create", "hot", "--sql", SQL, "--schema", "reading"))
    lines = '{"topic": "a/1", "payload": {"t": 1}}\n\n{"topic": "a/2", "qos": 1}\n'
    tried = json.loads(done(run(address, "rules", "test", "hot", "--messages", "-", "--json", stdin=lines)))
    assert tried["matched"] == 2
    assert (asked[-1]["sql"], asked[-1]["schema"]["name"]) == (SQL, "reading")
    for arguments, message in (
        (("test", "hot"), "give messages"),
        (("test", "-m", "a=1"), "give the name of a rule, or SQL"),
        (("test", "hot", "--sql", SQL, "-m", "a=1"), "give the name of a rule, or SQL"),
        (("test", "hot", "-m", "a"), "'a' is not TOPIC=PAYLOAD"),
        (("check",), "give the SQL"),
        (("create", "x"), "give the SQL"),
        (("create", "x", "--sql", SQL, "--action", "delta"), "--action is not JSON"),
        (("create", "x", "--sql", SQL, "--action", "[]"), "--action has to be a JSON object"),
    ):
        result = run(address, "rules", *arguments)
        assert (result.exit_code, message in result.output) == (2, True), result.output
    wrong = run(address, "rules", "test", "hot", "--messages", "-", stdin='{"topic": "a"}\n{')
    assert "line 2 is not JSON" in wrong.output


def test_schemas(address: str, tmp_path: Path) -> None:
    proto = tmp_path / "meter.proto"
    proto.write_text('syntax = "proto3";\nmessage Meter { double v = 1; }\n')
    given = ("--set", f"proto=@{proto}", "--set", "message=Meter")
    assert done(run(address, "schemas", "create", "meter", "--kind", "protobuf", *given)) == "created\n"
    shown = json.loads(done(run(address, "schemas", "show", "meter", "--json")))
    assert shown["definition"] == {"proto": proto.read_text().rstrip("\n"), "message": "Meter"}
    avro = '{"type": "record", "name": "r", "fields": []}'
    done(run(address, "schemas", "create", "reading", "--kind", "avro", "--set", f"schema={avro}"))
    assert "kind\tavro" in done(run(address, "schemas", "show", "reading"))
    listed = done(run(address, "schemas", "list")).splitlines()
    assert [line.split("\t")[:2] for line in listed[1:]] == [["meter", "protobuf"], ["reading", "avro"]]
    for arguments, message in (
        (("--set", "x"), "'x' is not NAME=VALUE"),
        (("--set", "proto=@/no/such/file"), "/no/such/file can't be read"),
    ):
        assert message in run(address, "schemas", "create", "x", "--kind", "csv", *arguments).output
    assert done(run(address, "schemas", "delete", "meter")) == "deleted\n"


def test_tables(address: str) -> None:
    given = ("--kind", "bronze", "--path", "tables/raw", "--filter", "a/#", "--filter", "b/#")
    assert done(run(address, "tables", "create", "raw", *given)) == "created\n"
    row = done(run(address, "tables", "list")).splitlines()[1].split("\t")
    assert row[:3] == ["raw", "bronze", "waiting for a pipeline"]
    assert row[6] == "a/# b/#"
    assert "format\tdelta" in done(run(address, "tables", "show", "raw"))
    assert done(run(address, "tables", "disable", "raw")) == "disabled\n"
    assert done(run(address, "tables", "enable", "raw")) == "waiting for a pipeline\n"
    assert done(run(address, "tables", "delete", "raw")) == "deleted\n"
    missing = run(address, "tables", "create", "raw", "--kind", "bronze")
    assert (missing.exit_code, "body.path: Field required" in missing.output) == (1, True)


def test_resources(address: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush\n")
    given = ("--type", "postgresql", "--set", "uri=postgresql://me@host/db", "--set", f"password=@{secret}")
    assert done(run(address, "resources", "create", "db", *given)) == "created\n"
    for arguments in (("list",), ("show", "db"), ("show", "db", "--json")):
        assert "hush" not in done(run(address, "resources", *arguments))
    assert "password\t******" in done(run(address, "resources", "show", "db"))
    row = done(run(address, "resources", "list")).splitlines()[1].split("\t")
    assert row[:4] == ["db", "postgresql", "not used", "postgresql://me@host/db"]
    assert done(run(address, "resources", "delete", "db")) == "deleted\n"
