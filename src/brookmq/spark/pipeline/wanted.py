"""Which queries there should be: the enabled rules and tables of the documents, compiled.

Three things are told of a query, for what follows from a change of them:

- ``version``: all of it. Another one: the query is started anew, and goes on where it was.
- ``meaning``: what its state in Spark depends on (SQL, schema, filters). Another one: a new checkpoint, which begins
  where the old one ended.
- ``lineage``: which rule or table it is. A rule that was deleted and made again is another one, and so is a table at
  another place: it begins where such a query begins.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from brookmq.base.rule_documents import Resource, Rule, TableDocument
from brookmq.spark.pipeline.documents import RULE, TABLE, Documents
from brookmq.spark.pipeline.supervising import Wish
from brookmq.spark.rules import CompiledRule, RuleError, Schema, SchemaError, compile_rule

HASH_CHARACTERS: Final = 16
READER_CHARACTERS_MAX: Final = 64
EARLIEST: Final = "earliest"


@dataclass(frozen=True, slots=True)
class WantedQuery:
    """A rule or table that should run. Without a ``problem`` a rule has ``compiled``."""

    name: str
    document: Rule | TableDocument | None
    version: str
    meaning: str
    lineage: str
    resources: Mapping[str, Resource]
    schema: Schema | None = None
    compiled: CompiledRule | None = None
    problem: str | None = None

    @property
    def wish(self) -> Wish:
        return Wish(self.version, self.problem)

    @property
    def reader(self) -> str:
        """Under which the node keeps how far the query is; also the name of its folder."""
        return reader_name(self.name)

    @property
    def begins(self) -> str | float:
        """Where a query begins that was never there: a rule where it was made, a table with all there is."""
        return self.document.created_at if isinstance(self.document, Rule) else EARLIEST


def reader_name(query: str) -> str:
    """A name that the node takes for a reader; never the same for two queries."""
    name = query.replace("/", ".", 1)
    if len(name) <= READER_CHARACTERS_MAX:
        return name
    end = f"-{_hash(name)[:8]}"
    return name[: READER_CHARACTERS_MAX - len(end)] + end


def reader_names(documents: Documents) -> set[str]:
    """The readers of all rules and tables, whether they are enabled or not."""
    names = [f"{RULE}/{name}" for name in documents.rules] + [f"{TABLE}/{name}" for name in documents.tables]
    return {reader_name(name) for name in (*names, *documents.problems)}


def wanted_queries(documents: Documents, before: Mapping[str, WantedQuery] | None = None) -> dict[str, WantedQuery]:
    """All queries that should run, by name. What is in ``before`` and did not change is not compiled again."""
    found: dict[str, WantedQuery] = {}
    for name, problem in documents.problems.items():
        if name.startswith((f"{RULE}/", f"{TABLE}/")):
            found[name] = WantedQuery(name, None, _hash(problem), "", "", {}, problem=problem)
    for rule in documents.rules.values():
        if rule.enabled:
            _add(found, f"{RULE}/{rule.name}", rule, documents, before or {})
    for table in documents.tables.values():
        if table.enabled:
            _add(found, f"{TABLE}/{table.name}", table, documents, before or {})
    return found


def _add(
    found: dict[str, WantedQuery],
    name: str,
    document: Rule | TableDocument,
    documents: Documents,
    before: Mapping[str, WantedQuery],
) -> None:
    kept = None if document.schema_name is None else documents.schemas.get(document.schema_name)
    definition = None if kept is None else {"kind": kept.kind, "definition": kept.definition}
    resources = _resources(document, documents)
    version = _hash([document.document(), definition, [one.document() for _, one in sorted(resources.items())]])
    if (same := before.get(name)) is not None and same.version == version:
        found[name] = same
        return
    if isinstance(document, Rule):
        meaning, lineage = _hash([document.sql, definition]), _hash([document.created_at])
    else:
        meaning = _hash([document.kind, document.filter, definition])
        lineage = _hash([document.kind, document.format, document.path])
    schema, compiled, problem = None, None, _missing(document, documents)
    if problem is None:
        try:
            schema = None if kept is None else Schema.checked(kept.name, kept.kind, kept.definition)
            compiled = compile_rule(document.sql, schema) if isinstance(document, Rule) else None
        except (RuleError, SchemaError) as error:
            problem = str(error)
    found[name] = WantedQuery(name, document, version, meaning, lineage, resources, schema, compiled, problem)


def _resources(document: Rule | TableDocument, documents: Documents) -> dict[str, Resource]:
    """The resources that the actions name, as far as they are there."""
    return {name: documents.resources[name] for name in _named(document) if name in documents.resources}


def _named(document: Rule | TableDocument) -> list[str]:
    if not isinstance(document, Rule):
        return []
    actions = [one for action in document.actions for one in (action, *action.fallbacks)]
    names = (getattr(action, "resource", None) for action in actions)
    return [name for name in names if name is not None]


def _missing(document: Rule | TableDocument, documents: Documents) -> str | None:
    """What the document names and the node does not have."""
    schema = document.schema_name
    if schema is not None and schema not in documents.schemas:
        return documents.problems.get(f"schema/{schema}", f"there is no schema {schema}")
    for name in _named(document):
        if name not in documents.resources:
            return documents.problems.get(f"resource/{name}", f"there is no resource {name}")
    if isinstance(document, TableDocument) and document.kind == "gold_last" and document.format != "delta":
        return f"a table of last values changes its rows, and {document.format} only takes new ones: use delta"
    return None


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARACTERS]
