"""Asks a store whether JetStream answers: the one question behind "ready", for our own store and for others."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

import nats.errors
from nats.aio.client import Client

from brookmq.store.client import StoreClient
from brookmq.store.settings_file import Credentials

CONNECT_SECONDS_MAX = 2.0
ANSWER_SECONDS_MAX = 5.0  # a store under full load answers in milliseconds; a disk that stalls for a moment is no death

_QUESTION = "$JS.API.INFO"
_NOT_ENABLED = frozenset({10039, 10076})  # for the account; for the server


class Outcome(Enum):
    """What came of a question."""

    ANSWERED = auto()
    SILENT = auto()  # no answer, or an error that may pass by itself
    DISABLED = auto()  # the server is there and has given up JetStream: only a new start helps


class Answer(NamedTuple):
    """``reason`` is empty for ANSWERED; ``error`` is what a failed attempt to ask ended with."""

    outcome: Outcome
    reason: str = ""
    error: Exception | None = None


class Probe:
    """A connection that is made when it is needed and never by itself: whoever asks decides when to try again."""

    def __init__(
        self,
        addresses: Sequence[str],
        credentials: Credentials | None,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
    ) -> None:
        self._addresses = list(addresses)
        self._credentials = credentials
        self._tls = tls
        self._token = token
        self._client: Client | None = None
        self._error: Exception | None = None  # of the connection; the last one

    async def ask(self, answer_seconds_max: float | None = None) -> Answer:
        """One question. Whatever goes wrong is an answer, never an exception.

        With a time of its own the connection stays when it passes: `reaches` tells whether somebody is there.
        """
        try:
            client = await self._connected()
            reply = await client.request(_QUESTION, timeout=answer_seconds_max or ANSWER_SECONDS_MAX)
        except nats.errors.NoRespondersError:
            return Answer(Outcome.DISABLED, "the store runs without JetStream")
        except (nats.errors.Error, OSError, TimeoutError) as error:
            if answer_seconds_max is None or not isinstance(error, nats.errors.TimeoutError):
                await self.close()
            cause = self._error if isinstance(error, nats.errors.NoServersError) and self._error else error
            return Answer(Outcome.SILENT, f"the store does not answer ({_words(cause)})", cause)
        return _judge(reply.data)

    async def reaches(self) -> bool:
        """Whether the server itself is there: it takes the connection and answers a ping, JetStream or not."""
        try:
            client = await self._connected()
            await client.flush(timeout=ANSWER_SECONDS_MAX)  # type: ignore[arg-type]  # it takes fractions
        except (nats.errors.Error, OSError, TimeoutError):
            await self.close()
            return False
        return True

    async def close(self) -> None:
        """Close the connection, if there is one."""
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(OSError):  # what it still wanted to say finds nobody
                await client.close()

    async def _connected(self) -> Client:
        if self._client is None or not self._client.is_connected:
            await self.close()
            user, password = self._credentials or (None, None)
            self._client = client = (
                StoreClient()
            )  # known before it is connected: a failed connect leaves its socket open
            self._error = None
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                await client.connect(
                    servers=self._addresses,
                    user=user,
                    password=password,
                    token=self._token,
                    tls=self._tls,
                    name="brookmq-probe",
                    connect_timeout=CONNECT_SECONDS_MAX,  # type: ignore[arg-type]  # it takes fractions
                    allow_reconnect=False,
                    # Without these two the client tries an address for minutes before it says so.
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0.01,  # type: ignore[arg-type]  # it takes fractions
                    error_cb=self._remember,
                )
        return self._client

    async def _remember(self, error: Exception) -> None:
        """The client tells the cause here and raises only that there is no server."""
        self._error = error


def _judge(data: bytes) -> Answer:
    try:
        error = json.loads(data).get("error")
    except (ValueError, AttributeError):
        return Answer(Outcome.SILENT, "the store's answer is not one of JetStream")
    if error is None:
        return Answer(Outcome.ANSWERED)
    if not isinstance(error, dict):
        return Answer(Outcome.SILENT, "the store's answer is not one of JetStream")
    description = error.get("description", "no reason given")
    outcome = Outcome.DISABLED if error.get("err_code") in _NOT_ENABLED else Outcome.SILENT
    return Answer(outcome, f"the store is not available ({description})")


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message.rstrip('.')}"
    return str(error).removeprefix("nats: ") or type(error).__name__
