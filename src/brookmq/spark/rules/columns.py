"""The columns that a rule can name: those of a message, and those of an event."""

from __future__ import annotations

from typing import Final

from brookmq.spark.rules.types import (
    BOOLEAN,
    BYTES,
    INT,
    INTEGER,
    TEXT,
    TIMESTAMP,
    Type,
    list_of,
    record_of,
)

MESSAGE_COLUMNS: Final[dict[str, Type]] = {
    "topic": TEXT,
    "payload": BYTES,
    "qos": INT,
    "retain": BOOLEAN,
    "client_id": TEXT,
    "username": TEXT,
    "user_properties": list_of(record_of((("name", TEXT), ("value", TEXT)))),
    "content_type": TEXT,
    "response_topic": TEXT,
    "correlation_data": BYTES,
    "payload_format": INT,
    "expires_at": TIMESTAMP,
    "published_at": TIMESTAMP,
    "partition": INT,
    "offset": INTEGER,
    "node": TEXT,
}
"""As the source has them, in its order."""

OTHER_NAMES: Final = {"clientid": "client_id"}
