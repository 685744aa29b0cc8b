"""Actions are made from documents."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pyspark.sql.types import StructType

from brookmq.base.rule_documents import ACTION_TYPES, parse_action, parse_resource
from brookmq.spark.actions import ActionError, NodeAccess, make_action
from brookmq.spark.actions.interface import one_line

SCHEMA = StructType().add("number", "long").add("topic", "string").add("published_at", "timestamp")
NODE = NodeAccess(("http://127.0.0.1:1",), "secret")

DOCUMENTS: dict[str, dict[str, Any]] = {
    "delta": {"path": "/nowhere/delta"},
    "iceberg": {"warehouse": "/nowhere/iceberg", "table": "a.b"},
    "parquet": {"path": "/nowhere/parquet"},
    "postgresql": {"uri": "postgresql://user@127.0.0.1:1/db", "table": "t"},
    "webhook": {"url": "http://127.0.0.1:1/"},
    "console": {},
    "republish": {"topic": "out/${topic}"},
}


@pytest.mark.parametrize("kind", ACTION_TYPES)
def test_every_type_is_made_without_touching_anything(kind: str) -> None:
    action = make_action(parse_action({"type": kind, **DOCUMENTS[kind]}), {}, NODE, SCHEMA)
    assert callable(action.write)
    action.close()
    action.close()


@pytest.mark.parametrize("kind", ["postgresql", "webhook"])
def test_a_resource_that_is_not_there_is_told(kind: str) -> None:
    document = {"type": kind, "resource": "db", **({"table": "t"} if kind == "postgresql" else {})}
    other = "webhook" if kind == "postgresql" else "postgresql"
    address = {"url": "http://127.0.0.1:1/"} if other == "webhook" else {"uri": "postgresql://user@127.0.0.1:1/db"}
    resource = parse_resource({"type": other, "name": "db", "settings": address})
    for resources in ({}, {"db": resource}):
        with pytest.raises(ActionError, match=f"no resource 'db' of type {kind}"):
            make_action(parse_action(document), resources, NODE, SCHEMA)


def test_libraries_are_loaded_by_those_who_need_them() -> None:
    program = (
        "import sys, brookmq.spark.actions as a\n"
        "loaded = {'deltalake', 'pyiceberg', 'adbc_driver_postgresql', 'pyarrow', 'pyspark.sql'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(NODE)


def test_what_libraries_say_is_one_line() -> None:
    error = OSError("Generic error\n  \x1b[31m↳\x1b[0m Unable to walk\n   ↳ Not a directory: ")
    assert one_line(error) == "Generic error: Unable to walk: Not a directory"
    assert one_line(TimeoutError()) == "TimeoutError"
