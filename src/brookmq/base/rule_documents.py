"""Rules, schemas, declared tables and resources as documents: what is kept in the store and goes over HTTP.

What a person writes is a *body* (``RuleBody``…); with its name, and what the node notes of it, it is the document
(``Rule``…). Everything that can be told without Spark and SQL is checked here, once for the node, its commands and the
pipeline: names, types, sizes, the settings of actions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from brookmq.base.config.values import TopicFilter
from brookmq.base.errors import BrookError
from brookmq.base.rule_actions import (
    ACTION_TYPES,
    FALLBACKS_MAX,
    Action,
    ConsoleAction,
    DeltaAction,
    Document,
    FilePath,
    Headers,
    IcebergAction,
    Name,
    ParquetAction,
    PostgresqlAction,
    PostgresqlUri,
    RepublishAction,
    Text,
    WebhookAction,
    WebhookUrl,
    check_name,
    placeholders,
)

__all__ = [
    "ACTIONS_MAX",
    "ACTION_TYPES",
    "FALLBACKS_MAX",
    "FILTERS_MAX",
    "RESOURCES_MAX",
    "RULES_MAX",
    "SCHEMAS_MAX",
    "TABLES_MAX",
    "Action",
    "ConsoleAction",
    "DeltaAction",
    "Document",
    "DocumentError",
    "IcebergAction",
    "Name",
    "ParquetAction",
    "PostgresqlAction",
    "PostgresqlResource",
    "PostgresqlSettings",
    "RepublishAction",
    "Resource",
    "ResourceBody",
    "Rule",
    "RuleBody",
    "SchemaBody",
    "SchemaDocument",
    "SqlText",
    "TableBody",
    "TableDocument",
    "WebhookAction",
    "WebhookResource",
    "WebhookSettings",
    "check_name",
    "parse_action",
    "parse_resource",
    "parse_rule",
    "parse_schema",
    "parse_table",
    "placeholders",
    "problem",
    "problems",
]

RULES_MAX: Final = 1_000
SCHEMAS_MAX: Final = 1_000
TABLES_MAX: Final = 1_000
RESOURCES_MAX: Final = 1_000
SQL_BYTES_MAX: Final = 64 * 1024
DEFINITION_BYTES_MAX: Final = 512 * 1024
DESCRIPTION_CHARACTERS_MAX: Final = 1_024
ACTIONS_MAX: Final = 16
FILTERS_MAX: Final = 64
RESOURCE_TYPES: Final = ("postgresql", "webhook")


class DocumentError(BrookError):
    """A document that is refused: the caller of the API, or whoever wrote it, can mend it."""


def _short_sql(text: str) -> str:
    if len(text.encode()) > SQL_BYTES_MAX:
        raise ValueError(f"a rule has {SQL_BYTES_MAX} bytes at most")
    if not text.strip():
        raise ValueError("there is no SQL in it")
    return text


def _storable(definition: dict[str, Any]) -> dict[str, Any]:
    try:
        size_bytes = len(json.dumps(definition, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, RecursionError, TypeError):
        raise ValueError("it can't be written as JSON") from None
    if size_bytes > DEFINITION_BYTES_MAX:
        raise ValueError(f"a definition has {DEFINITION_BYTES_MAX} bytes at most, as JSON")
    return definition


def _token(text: str) -> str:
    if not re.fullmatch(r"[\x21-\x7e]+", text):
        raise ValueError("a token has visible characters of ASCII, and no blanks")
    return text


Description = Annotated[Text, Field(max_length=DESCRIPTION_CHARACTERS_MAX)]
SqlText = Annotated[Text, AfterValidator(_short_sql)]
Definition = Annotated[dict[str, Any], AfterValidator(_storable)]
SchemaKind = Literal["json", "csv", "text", "avro", "protobuf", "sparkplug"]


class _Kept(Document):
    """What the node notes of a document that it keeps: unix times, and how often it was changed."""

    name: Name
    created_at: float = 0.0
    changed_at: float = 0.0
    revision: Annotated[int, Field(ge=0)] = 0


class RuleBody(Document):
    """``schema`` names a schema of payloads; without one they are JSON."""

    sql: SqlText
    actions: Annotated[list[Action], Field(max_length=ACTIONS_MAX)] = Field(default_factory=list)
    on_action_failed: Literal["retry", "continue", "stop"] = "retry"
    """When an action and its fallbacks failed: try the batch again, go on without these rows, or end the rule."""
    enabled: bool = True
    description: Description = ""
    schema_name: Annotated[Name | None, Field(alias="schema")] = None


class Rule(RuleBody, _Kept):
    """A rule that is kept. ``created_at`` is also from when on its messages are read."""


class SchemaBody(Document):
    """What a definition holds is for the rule checker to read."""

    kind: SchemaKind
    definition: Definition = Field(default_factory=dict)
    description: Description = ""


class SchemaDocument(SchemaBody, _Kept):
    """A schema of payloads that is kept."""


class TableBody(Document):
    """A ready table: raw messages, decoded ones, the last value per device, one-minute windows."""

    kind: Literal["bronze", "silver", "gold_last", "gold_minute"]
    filter: Annotated[list[TopicFilter], Field(min_length=1, max_length=FILTERS_MAX)] = Field(
        default_factory=lambda: ["#"]
    )
    schema_name: Annotated[Name | None, Field(alias="schema")] = None
    path: FilePath
    format: Literal["delta", "parquet", "iceberg"] = "delta"
    enabled: bool = True
    description: Description = ""


class TableDocument(TableBody, _Kept):
    """A declared table that is kept."""


class PostgresqlSettings(Document):
    """A password may stand apart from the address."""

    uri: PostgresqlUri
    password: Annotated[Text, Field(max_length=1024)] | None = None


class WebhookSettings(Document):
    """``token`` goes out as ``Authorization: Bearer …``."""

    url: WebhookUrl
    token: Annotated[str, Field(max_length=8192), AfterValidator(_token)] | None = None
    headers: Headers = Field(default_factory=dict)


class _PostgresqlBody(Document):
    type: Literal["postgresql"]
    settings: PostgresqlSettings
    description: Description = ""


class _WebhookBody(Document):
    type: Literal["webhook"]
    settings: WebhookSettings
    description: Description = ""


class PostgresqlResource(_PostgresqlBody, _Kept):
    """A database that actions share."""


class WebhookResource(_WebhookBody, _Kept):
    """An HTTP address that actions share."""


ResourceBody = Annotated[_PostgresqlBody | _WebhookBody, Field(discriminator="type")]
Resource = Annotated[PostgresqlResource | WebhookResource, Field(discriminator="type")]

Model = TypeVar("Model")

_ACTION: Final[TypeAdapter[Action]] = TypeAdapter(Action)
_RESOURCE: Final[TypeAdapter[Resource]] = TypeAdapter(Resource)


def parse_action(document: object) -> Action:
    """An action; like the others below it raises DocumentError with all that is wrong."""
    return _parsed(_ACTION.validate_python, document)


def parse_rule(document: object) -> Rule:
    return _parsed(Rule.model_validate, document)


def parse_schema(document: object) -> SchemaDocument:
    return _parsed(SchemaDocument.model_validate, document)


def parse_table(document: object) -> TableDocument:
    return _parsed(TableDocument.model_validate, document)


def parse_resource(document: object) -> Resource:
    return _parsed(_RESOURCE.validate_python, document)


def problems(error: ValidationError) -> str:
    """What is wrong with a document, and where: ``actions.0.path: Field required``."""
    return "; ".join(problem(details["loc"], details) for details in error.errors())


def problem(path: Sequence[str | int], details: Mapping[str, Any]) -> str:
    """One of pydantic's findings as a line."""
    where, context = place(path), details.get("ctx", {})
    message: str = details["msg"].removeprefix("Value error, ")
    if details["type"] == "union_tag_invalid":
        known = context["expected_tags"].replace("'", "")
        message = f"there is no type {context['tag'][:64]!r}; there are {known}"
    elif details["type"] == "union_tag_not_found":
        message = "it has no type"
    return f"{where}: {message}" if where else message


def place(path: Iterable[str | int]) -> str:
    """The way to a value as a person would write it: without the type of an action, which pydantic puts there."""
    shown: list[str] = []
    before: str | int = ""
    for step in path:
        inside = isinstance(before, int) or before in ("", "body")
        if not (inside and step in ACTION_TYPES):
            shown.append(str(step))
        before = step
    return ".".join(shown)


def _parsed(validate: Callable[[object], Model], document: object) -> Model:
    try:
        return validate(document)
    except ValidationError as error:
        raise DocumentError(problems(error)) from None
