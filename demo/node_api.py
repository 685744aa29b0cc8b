"""What the demo tells a node and asks it, over HTTP: a schema, two rules, how the pipeline gets on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx

from demo.fleet import HOT_CELSIUS, TEMPERATURE

RULE_S: Final = 120.0  # the first one waits until the node has a Spark to look at it
SCHEMA: Final = "reading"
FIELDS: Final = "n bigint, kind string, value double, x bigint, y bigint"
ALARMS: Final = "alarms"
WINDOWS: Final = "windows"
WINDOW_S: Final = 5
WATERMARK_S: Final = 3
ALARM_TOPICS: Final = "alarms/#"

ALARMS_SQL: Final = f"""\
SELECT client_id, payload.n AS n, payload.x AS x, payload.y AS y, payload.value AS celsius, published_at
FROM "campus/+/{TEMPERATURE}/+"
WHERE payload.value > {HOT_CELSIUS:g}"""

WINDOWS_SQL: Final = f"""\
SELECT window.start AS start, payload.kind AS kind, count(*) AS messages, count(payload.n) AS readings,
       avg(payload.value) AS mean, min(payload.value) AS low, max(payload.value) AS high
FROM "campus/#"
GROUP BY window(published_at, '{WINDOW_S} seconds'), kind
WATERMARK '{WATERMARK_S} seconds'"""


class RefusedError(Exception):
    """The node did not take something."""


@dataclass(frozen=True, slots=True)
class QueryNow:
    """A rule or table of the pipeline, as it is at the moment."""

    name: str
    state: str
    batch: int  # the last one that was finished; -1 before the first
    lag: int
    matched: int
    passed: int
    message: str | None


class NodeApi:
    """One node's HTTP API."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.AsyncClient(base_url=f"{url}/api/v1", timeout=RULE_S, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def put_schema(self) -> None:
        await self._put(f"/schemas/{SCHEMA}", {"kind": "json", "definition": {"fields": FIELDS}})

    async def disable_table(self, name: str) -> None:
        await self._checked(await self._http.post(f"/tables/{name}/disable"))

    async def put_rules(self, tables: Path) -> None:
        """Alarms go into a table and back to MQTT; windows go into a table."""
        await self._put(
            f"/rules/{ALARMS}",
            {
                "sql": ALARMS_SQL,
                "schema": SCHEMA,
                "actions": [
                    {"type": "republish", "topic": "alarms/${client_id}", "qos": 1},
                    {"type": "delta", "path": str(tables / ALARMS), "partition_by": []},
                ],
            },
        )
        await self._put(
            f"/rules/{WINDOWS}",
            {
                "sql": WINDOWS_SQL,
                "schema": SCHEMA,
                "actions": [{"type": "delta", "path": str(tables / WINDOWS), "partition_by": []}],
            },
        )

    async def queries(self) -> list[QueryNow]:
        """What the pipeline told last; nothing before it runs."""
        status = (await self._checked(await self._http.get("/pipeline/status"))).json()
        return [
            QueryNow(
                str(one["name"]),
                str(one["state"]),
                int(one["batch"]),
                int(one["lag"]),
                int(one["matched"]),
                int(one["passed"]),
                one["message"],
            )
            for one in status.get("queries") or ()
        ]

    async def _put(self, path: str, body: Mapping[str, Any]) -> None:
        await self._checked(await self._http.put(path, json=body))

    async def _checked(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_error:
            raise RefusedError(f"{answer.request.method} {answer.request.url.path}: {answer.text}")
        return answer
