"""What operations may see and change of a node's rules, schemas, declared tables and resources.

A part of :class:`brookmq.ops.view.NodeView`, and its rules hold here, too. Documents are shown without their secrets.
What can't be answered now, because the store is not there or the rule checker does not answer, is an
``OperationError``; a document that is wrong a ``DocumentError``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from brookmq.base.errors import BrookError, OperationError
from brookmq.base.pipeline_status import PipelineStatus, QueryState, QueryStatus
from brookmq.base.rule_documents import (
    Action,
    PostgresqlResource,
    ResourceBody,
    Rule,
    RuleBody,
    SchemaBody,
    SchemaDocument,
    TableBody,
    TableDocument,
    WebhookResource,
)

RuleState = Literal["disabled", "waiting for a pipeline"] | QueryState


class RuleRefusedError(BrookError):
    """The SQL of a rule, or a schema, is wrong. ``line`` and ``column`` count from 1; 0: it is not about a place."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class ConflictError(BrookError):
    """It can't be done as things are."""


class DocumentInUseError(ConflictError):
    """Another document needs this one as it is, or it was changed meanwhile."""


class TooManyDocumentsError(ConflictError):
    """A bound on what is kept."""


class NewerPipelineError(ConflictError):
    """A pipeline reports that was replaced."""


class CannotCheckError(OperationError):
    """This installation has no Spark, without which no rule can be looked at."""


class Statistics(BaseModel):
    """See :class:`brookmq.base.pipeline_status.QueryStatus`."""

    matched: int
    passed: int
    failed: int
    actions_failed: int
    lag: int
    rows_per_second: float
    batch_ms: float
    batch: int
    restarts: int
    since: float

    @classmethod
    def of(cls, query: QueryStatus) -> Statistics:
        return cls(**{name: getattr(query, name) for name in cls.model_fields})


class _Running(BaseModel):
    state: RuleState
    message: Annotated[str | None, Field(description="why it is in this state")] = None
    statistics: Statistics | None = None


class RuleInfo(Rule, _Running):
    """A rule and how it does."""


@dataclass(frozen=True, slots=True)
class RuleFigures:
    """What the metrics have of a rule."""

    name: str
    state: RuleState
    statistics: Statistics | None


class TableInfo(TableDocument, _Running):
    """A declared table and how it does."""


class SchemaInfo(SchemaDocument):
    used_by: list[str]


class _Used(BaseModel):
    used_by: list[str]
    state: Annotated[
        Literal["not used", "waiting for a pipeline", "in use", "failing"],
        Field(description="failing: a rule that uses it is in trouble, for this or another reason"),
    ]


class PostgresqlInfo(PostgresqlResource, _Used):
    """A database that rules use."""


class WebhookInfo(WebhookResource, _Used):
    """An HTTP address that rules use."""


ResourceInfo = Annotated[PostgresqlInfo | WebhookInfo, Field(discriminator="type")]


class Column(BaseModel):
    """``type`` as Spark writes it."""

    name: str
    type: str


class CheckedRule(BaseModel):
    """What a rule reads, and what comes out of it."""

    columns: list[Column]
    filters: list[str]


class TriedRule(CheckedRule):
    """``matched`` messages of the rule's filters, of which ``failed`` could not be decoded."""

    rows: list[dict[str, Any]]
    matched: int
    failed: int


class PipelineInfo(BaseModel):
    """The last report of a pipeline; nothing but ``alive`` where there was none."""

    alive: bool
    heard_at: float | None = None
    id: str | None = None
    master: str | None = None
    application: str | None = None
    started_at: float | None = None
    queries: list[QueryStatus] = []


class PipelineDocuments(BaseModel):
    """All that a pipeline needs. ``revision`` is another one after each change.

    A pipeline asks every second, and mostly nothing has changed: so one is made for each revision, and written once.
    """

    model_config = ConfigDict(frozen=True)

    revision: int
    rules: list[Rule]
    schemas: list[SchemaDocument]
    tables: list[TableDocument]
    resources: list[PostgresqlResource | WebhookResource]

    @cached_property
    def json_bytes(self) -> bytes:
        return self.model_dump_json().encode()


class RuleView(Protocol):
    """Methods that put something answer with what is kept then, and whether it is new; once it is stored."""

    def figures(self) -> Sequence[RuleFigures]:
        """Of all rules, by name; none while they are not known yet."""

    def pipeline_status(self) -> PipelineInfo: ...

    def tell_pipeline_status(self, status: PipelineStatus) -> None:
        """What a running pipeline reports; ``NewerPipelineError`` if it is not the one that runs."""

    async def documents(self, *, secrets: bool) -> PipelineDocuments:
        """Everything, for a pipeline."""

    async def rules(self) -> Sequence[RuleInfo]:
        """By name, like the other listings."""

    async def rule(self, name: str) -> RuleInfo | None: ...

    async def put_rule(self, name: str, body: RuleBody) -> tuple[RuleInfo, bool]:
        """``RuleRefusedError`` for SQL that is wrong."""

    async def enable_rule(self, name: str, *, enabled: bool) -> RuleInfo | None: ...

    async def delete_rule(self, name: str) -> bool: ...

    async def check_rule(self, sql: str, schema: str | SchemaBody | None, actions: Sequence[Action]) -> CheckedRule:
        """What Spark says of a rule, and whether these actions could have its rows."""

    async def test_rule(
        self, sql: str, schema: str | SchemaBody | None, messages: Sequence[dict[str, Any]]
    ) -> TriedRule:
        """A rule on sample messages, see :mod:`brookmq.base.sample_messages`."""

    async def schemas(self) -> Sequence[SchemaInfo]: ...

    async def put_schema(self, name: str, body: SchemaBody) -> tuple[SchemaInfo, bool]:
        """``RuleRefusedError`` for a definition that is wrong, or with which a rule would not work any more."""

    async def delete_schema(self, name: str) -> bool:
        """``DocumentInUseError`` while something has this schema."""

    async def tables(self) -> Sequence[TableInfo]: ...

    async def put_table(self, name: str, body: TableBody) -> tuple[TableInfo, bool]: ...

    async def enable_table(self, name: str, *, enabled: bool) -> TableInfo | None: ...

    async def delete_table(self, name: str) -> bool: ...

    async def resources(self) -> Sequence[ResourceInfo]: ...

    async def put_resource(self, name: str, body: ResourceBody) -> tuple[ResourceInfo, bool]: ...

    async def delete_resource(self, name: str) -> bool:
        """``DocumentInUseError`` while a rule uses it."""
