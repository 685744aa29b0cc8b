"""Asks a store whether JetStream answers: the one question behind "ready", for our own store and for others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

import nats
import nats.errors
from nats.aio.client import Client

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
    """``reason`` is empty for ANSWERED."""

    outcome: Outcome
    reason: str = ""


class Probe:
    """A connection that is made when it is needed and never by itself: whoever asks decides when to try again."""

    def __init__(self, addresses: Sequence[str], credentials: Credentials | None) -> None:
        self._addresses = list(addresses)
        self._credentials = credentials
        self._client: Client | None = None

    async def ask(self) -> Answer:
        """One question. Whatever goes wrong is an answer, never an exception."""
        try:
            client = await self._connected()
            reply = await client.request(_QUESTION, timeout=ANSWER_SECONDS_MAX)
        except nats.errors.NoRespondersError:
            return Answer(Outcome.DISABLED, "the store runs without JetStream")
        except (nats.errors.Error, OSError, TimeoutError) as error:
            await self.close()
            return Answer(Outcome.SILENT, f"the store does not answer ({_words(error)})")
        return _judge(reply.data)

    async def close(self) -> None:
        """Close the connection, if there is one."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connected(self) -> Client:
        if self._client is None or not self._client.is_connected:
            await self.close()
            user, password = self._credentials or (None, None)
            client = await nats.connect(
                servers=self._addresses,
                user=user,
                password=password,
                name="brookmq-probe",
                connect_timeout=CONNECT_SECONDS_MAX,
                allow_reconnect=False,
                error_cb=_ignored,
            )
            self._client = client
        return self._client


def _judge(data: bytes) -> Answer:
    try:
        error = json.loads(data).get("error")
    except (ValueError, AttributeError):
        return Answer(Outcome.SILENT, "the store's answer is not one of JetStream")
    if error is None:
        return Answer(Outcome.ANSWERED)
    description = error.get("description", "no reason given")
    outcome = Outcome.DISABLED if error.get("err_code") in _NOT_ENABLED else Outcome.SILENT
    return Answer(outcome, f"the store is not available ({description})")


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return "no answer in time"
    return str(error).removeprefix("nats: ") or type(error).__name__


async def _ignored(error: Exception) -> None:
    """The client tells every error here as well; `ask` sees them where they matter."""
