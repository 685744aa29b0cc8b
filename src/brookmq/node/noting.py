"""What the node adds to a document that it keeps, and what it leaves out of one that it shows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from brookmq.base.rule_documents import DocumentError, Resource, Rule, SchemaDocument, TableDocument, check_name
from brookmq.base.rule_secrets import hidden
from brookmq.node.shelf import Named

NOTED: Final = {"created_at", "changed_at", "revision"}  # by the node, and no change by themselves
WITH_SECRETS: Final = {"actions", "settings"}


def noted(
    name: str, fields: Mapping[str, Any], before: Rule | SchemaDocument | TableDocument | Resource | None
) -> dict[str, Any]:
    """A document with its name, its times and its revision; DocumentError for a name that is none."""
    try:
        check_name(name)
    except ValueError as error:
        raise DocumentError(f"name: {error}") from None
    now = time.time()
    return {
        **fields,
        "name": name,
        "created_at": now if before is None else before.created_at,
        "changed_at": now,
        "revision": 1 if before is None else before.revision + 1,
    }


def same(one: Named, other: Named) -> bool:
    """Whether two documents are the same but for what the node notes."""
    before, after = one.document(), other.document()
    return all(before[key] == after[key] for key in before if key not in NOTED)


def meaning(rule: Rule) -> tuple[object, ...]:
    """What the rule checker looks at."""
    return rule.sql, rule.schema_name, rule.actions


def shown(document: Rule | Resource) -> dict[str, Any]:
    """A document without its secrets."""
    return {key: hidden(value) if key in WITH_SECRETS else value for key, value in document.document().items()}


def asked(schema: SchemaDocument | None) -> dict[str, Any] | None:
    """A schema in a question to the rule checker."""
    if schema is None:
        return None
    return {"name": schema.name, "kind": schema.kind, "definition": schema.definition}
