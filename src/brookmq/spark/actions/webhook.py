"""Rows as JSON to an HTTP server, some hundred in a request, each an array of objects.

A server can't be part of our transaction: a request that was answered while we died is sent again. So each has an
``Idempotency-Key``, and a server that keeps the keys it has seen takes every row once. The key names query, batch and
the place in the batch; it also has a digest of the rows, so that two requests with different rows never have the same
key, whatever Spark does with the order of rows.

Requests go one after the other, in the order of the rows. What may pass (nobody answers, 429, 5xx) is tried again with
growing pauses, or after the time that the server asks for; everything else that is not a success is an error at once.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx
from pyspark.sql.types import StructType

from brookmq import __version__
from brookmq.base.rule_documents import WebhookAction
from brookmq.spark.actions.interface import ActionError, BatchKey
from brookmq.spark.actions.storable import check_names, json_rows
from brookmq.spark.actions.turns import Turns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PAUSE_FIRST_S: Final = 0.5
PAUSE_MAX_S: Final = 30.0
RETRY_AFTER_MAX_S: Final = 300.0  # a server that asks for more is down for us: the batch fails
ANSWER_CHARACTERS_MAX: Final = 200  # of an answer in an error
DIGEST_CHARACTERS: Final = 16
REQUEST_BYTES_MAX: Final = 8 * 1024 * 1024  # long rows make shorter requests

_PASSING: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})


class WebhookPoster:
    """Posts batches to one address. ``steady``: a batch that comes again has its rows in the same order."""

    def __init__(
        self,
        document: WebhookAction,
        url: str,
        headers: Mapping[str, str],
        token: str | None,
        schema: StructType,
        *,
        steady: bool = True,
    ) -> None:
        check_names(schema, _shown(url))
        self._url = url
        self._where = f"webhook {_shown(url)}"
        self._rows_per_request = document.rows_per_request
        self._tries = document.tries
        self._steady = steady
        authorization = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(
            headers={"User-Agent": f"brookmq/{__version__}", **authorization, **headers, **document.headers},
            timeout=document.timeout_s,
        )
        self._turns = Turns(self._where, self._client.close)
        self._batch: BatchKey | None = None  # the last one, and which of its requests were answered
        self._answered: set[str] = set()
        self._complete = False

    def write(self, frame: DataFrame, key: BatchKey) -> int:
        with self._turns.taken():
            if self._batch != key:
                self._batch, self._complete = key, False
                self._answered.clear()
            if self._complete:
                return 0
            posted = self._post_rows(json_rows(frame).toArrow().column(0).to_pylist(), key)
            self._complete = True
            return posted

    def close(self) -> None:
        self._turns.close()

    def _post_rows(self, rows: list[str], key: BatchKey) -> int:
        posted = 0
        for number, texts in enumerate(_requests(rows if self._steady else sorted(rows), self._rows_per_request)):
            body = f"[{','.join(texts)}]".encode()
            name = f"{key.tag}-{key.batch}-{number}-{hashlib.sha256(body).hexdigest()[:DIGEST_CHARACTERS]}"
            if name not in self._answered:  # to the try before this one
                self._post(body, name)
                self._answered.add(name)
                posted += len(texts)
        return posted

    def _post(self, body: bytes, name: str) -> None:
        """Returns with a success of the server."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": name}
        for number in range(self._tries):
            pause_s: float | None = None
            try:
                response = self._client.post(self._url, content=body, headers=headers)
            except httpx.TransportError as error:
                problem = f"no answer: {str(error) or type(error).__name__}"
            else:
                if response.is_success:
                    return
                problem = _answer(response)
                if not (response.is_server_error or response.status_code in _PASSING):
                    raise ActionError(f"{self._where}: {problem}")
                pause_s = _retry_after_s(response.headers.get("Retry-After"))
                if pause_s is not None and pause_s > RETRY_AFTER_MAX_S:
                    raise ActionError(f"{self._where}: {problem}, and is to be left alone for {pause_s:.0f} s")
            if number + 1 < self._tries:
                grown_s = min(PAUSE_MAX_S, PAUSE_FIRST_S * 2**number) * random.uniform(0.5, 1)  # noqa: S311
                if self._turns.closing.wait(grown_s if pause_s is None else pause_s):
                    raise ActionError(f"{self._where}: the pipeline ends, and the last answer was {problem}")
        raise ActionError(f"{self._where}: {problem}, {self._tries} times")


def _requests(rows: list[str], rows_max: int) -> Iterator[list[str]]:
    """The rows of each request. Depends on the rows alone: the same batch makes the same requests."""
    texts: list[str] = []
    size_bytes = 0
    for text in rows:
        if texts and (len(texts) == rows_max or size_bytes + len(text) > REQUEST_BYTES_MAX):
            yield texts
            texts, size_bytes = [], 0
        texts.append(text)
        size_bytes += len(text)
    if texts:
        yield texts


def _retry_after_s(text: str | None) -> float | None:
    """Seconds, or the time at which (RFC 9110, 10.2.3)."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - time.time())


def _answer(response: httpx.Response) -> str:
    said = " ".join(response.text.split())[:ANSWER_CHARACTERS_MAX]
    return f"answered {response.status_code} {response.reason_phrase}{f': {said}' if said else ''}"


def _shown(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
