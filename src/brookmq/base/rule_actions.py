"""What a rule does with its rows: one model for each type of action, checked without Spark.

Unknown keys are refused, ``"5"`` is no number, and everything has a bound: documents come from people and over HTTP,
and are kept. What only Spark can tell (is there such a column?) is for the rule checker and the pipeline.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

FALLBACKS_MAX: Final = 4
PATH_CHARACTERS_MAX: Final = 4096
ADDRESS_CHARACTERS_MAX: Final = 8192
COLUMNS_MAX: Final = 16  # by which a table is partitioned
HEADERS_MAX: Final = 64
TOPIC_BYTES_MAX: Final = 65535
OWN_TOPICS: Final = ("$SYS/", "$events/")  # the node's: nobody else publishes to them

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}\Z")
_PLACEHOLDER: Final = re.compile(r"\$\{([^{}]*)\}")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}\Z")
_SQL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_LEVELS_MAX: Final = 8  # of namespaces, and the table
_RESERVED_HEADERS: Final = frozenset({"content-length", "content-type", "host", "idempotency-key", "transfer-encoding"})


def check_name(name: str) -> str:
    """The names of rules, schemas, tables and resources."""
    if not NAME.match(name):
        raise ValueError("a name has letters, digits, _, . and -, a letter first, 64 at most")
    return name


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a lone surrogate is not a character") from None
    if "\0" in text:
        raise ValueError("there is a null character in it")
    return text


def _address(text: str, schemes: tuple[str, ...], example: str) -> str:
    try:
        parts = urlsplit(text)
        good = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or any(character.isspace() for character in text):
        raise ValueError(f"expected an address such as {example}")
    return text


def _headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_NAME.match(name):
            raise ValueError(f"{name[:64]!r} is no name of a header")
        if name.lower() in _RESERVED_HEADERS:
            raise ValueError(f"{name} is set by the action itself")
        if not (value.isprintable() and value.isascii()):
            raise ValueError(f"the value of {name} has other characters than those of ASCII that can be printed")
    return headers


def placeholders(template: str) -> tuple[str, ...]:
    """The columns in a template, each once, in the order in which they stand."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(template)))


def _topic_template(template: str) -> str:
    if len(template.encode()) > TOPIC_BYTES_MAX:
        raise ValueError(f"a topic has {TOPIC_BYTES_MAX} bytes at most")
    fixed = _PLACEHOLDER.sub("", template)
    if "${" in fixed or "" in placeholders(template):
        raise ValueError("a column stands in it as ${column}")
    if "+" in fixed or "#" in fixed:
        raise ValueError("a topic has no wildcards")
    if template.startswith(OWN_TOPICS):
        raise ValueError(f"{' and '.join(OWN_TOPICS)} topics are the node's own")
    return template


def _table_name(name: str, levels_min: int, levels_max: int, example: str) -> str:
    levels = name.split(".")
    if not levels_min <= len(levels) <= levels_max or not all(map(_SQL_NAME.fullmatch, levels)):
        raise ValueError(f"expected the name of a table such as {example}: letters, digits and _")
    return name


def _without_fallbacks(actions: object) -> object:
    """Looked at before they are read: what is nested deeper is never followed."""
    for action in actions if isinstance(actions, list) else []:
        below = action.get("fallbacks") if isinstance(action, Mapping) else getattr(action, "fallbacks", None)
        if below:
            raise ValueError("a fallback has no fallbacks of its own")
    return actions


Name = Annotated[str, AfterValidator(check_name)]
Text = Annotated[str, AfterValidator(_encodable)]
FilePath = Annotated[Text, Field(min_length=1, max_length=PATH_CHARACTERS_MAX)]
ColumnName = Annotated[Text, Field(min_length=1, max_length=255)]
PostgresqlUri = Annotated[
    Text,
    Field(max_length=ADDRESS_CHARACTERS_MAX),
    AfterValidator(lambda uri: _address(uri, ("postgresql", "postgres"), "postgresql://user@host/database")),
]
WebhookUrl = Annotated[
    Text,
    Field(max_length=ADDRESS_CHARACTERS_MAX),
    AfterValidator(lambda url: _address(url, ("http", "https"), "https://host/path")),
]
IcebergTable = Annotated[str, AfterValidator(lambda name: _table_name(name, 2, _LEVELS_MAX, "namespace.name"))]
PostgresqlTable = Annotated[str, AfterValidator(lambda name: _table_name(name, 1, 2, "readings or schema.readings"))]
Headers = Annotated[
    dict[str, Annotated[str, Field(max_length=ADDRESS_CHARACTERS_MAX)]],
    Field(max_length=HEADERS_MAX),
    AfterValidator(_headers),
]


class Document(BaseModel):
    """Nobody changes it, an unknown key is an error, and nothing is taken for something else."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, serialize_by_alias=True, validate_by_name=True
    )

    def document(self) -> dict[str, Any]:
        """As it is kept and goes over HTTP."""
        return self.model_dump(mode="json")


class _Action(Document):
    fallbacks: Annotated[list[Action], Field(max_length=FALLBACKS_MAX), BeforeValidator(_without_fallbacks)] = Field(
        default_factory=list
    )
    """Tried in turn with the rows of a batch that this action did not take."""


class DeltaAction(_Action):
    """Appends to a Delta table."""

    type: Literal["delta"] = "delta"
    path: FilePath
    partition_by: Annotated[list[ColumnName], Field(max_length=COLUMNS_MAX)] | None = None
    """None: by ``date``, made of ``published_at``, where the rule has such a column."""


class IcebergAction(_Action):
    """Appends to an Iceberg table in a warehouse folder with a catalogue of its own."""

    type: Literal["iceberg"] = "iceberg"
    warehouse: FilePath
    table: IcebergTable


class ParquetAction(_Action):
    """Adds files to a folder, partitioned by date."""

    type: Literal["parquet"] = "parquet"
    path: FilePath


class PostgresqlAction(_Action):
    """Inserts into a table, at the address in a resource or in ``uri``."""

    type: Literal["postgresql"] = "postgresql"
    resource: Name | None = None
    uri: PostgresqlUri | None = None
    table: PostgresqlTable

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if (self.resource is None) == (self.uri is None):
            raise ValueError("it needs resource or uri, and not both")
        return self


class WebhookAction(_Action):
    """Posts rows as JSON, some at a time, to the address in a resource or in ``url``."""

    type: Literal["webhook"] = "webhook"
    resource: Name | None = None
    url: WebhookUrl | None = None
    headers: Headers = Field(default_factory=dict)
    rows_per_request: Annotated[int, Field(ge=1, le=10_000)] = 500
    timeout_s: Annotated[float, Field(gt=0, le=300)] = 10.0
    tries: Annotated[int, Field(ge=1, le=100)] = 5

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if (self.resource is None) == (self.url is None):
            raise ValueError("it needs resource or url, and not both")
        return self


class ConsoleAction(_Action):
    """Prints the first rows of each batch where the pipeline runs."""

    type: Literal["console"] = "console"
    rows: Annotated[int, Field(ge=1, le=1_000)] = 20


class RepublishAction(_Action):
    """Publishes each row. In ``topic``, ``${column}`` is the value of a text column of the rule."""

    type: Literal["republish"] = "republish"
    topic: Annotated[Text, Field(min_length=1), AfterValidator(_topic_template)]
    qos: Annotated[int, Field(ge=0, le=2)] = 0
    retain: bool = False
    payload: ColumnName = "json"
    """``json``: the row as an object; else the column that is the payload."""

    @property
    def topic_columns(self) -> tuple[str, ...]:
        """The columns that the topic is made of."""
        return placeholders(self.topic)


Action = Annotated[
    DeltaAction | IcebergAction | ParquetAction | PostgresqlAction | WebhookAction | ConsoleAction | RepublishAction,
    Field(discriminator="type"),
]
ACTION_TYPES: Final = ("delta", "iceberg", "parquet", "postgresql", "webhook", "console", "republish")

for _model in _Action.__subclasses__():  # they hold each other
    _model.model_rebuild()
