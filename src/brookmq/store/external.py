"""A store that somebody else runs, by its addresses: the same face as `StoreServer`, without a process.

It is asked once a second; while it does not answer, the reason is told, and it is back when it answers. That it is not
there when the node starts is no error: it may come later. Nor is it one that it does not trust us or we not it: what is
wrong may be on its side. The reason says which keys to look at.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import Callable, Sequence
from typing import Final

import nats.errors

from brookmq.store.client import CertificateRefusedError, NoTlsError
from brookmq.store.diagnosis import Diagnosis, Trouble
from brookmq.store.probe import Outcome, Probe
from brookmq.store.server import PROBE_SECONDS, READY_WAIT_SECONDS
from brookmq.store.settings_file import Credentials

REFUSAL: Final = "authorization violation"  # in the servers' words


class ExternalStore:
    """``on_ready()`` and ``on_down(diagnosis)`` are called on the loop, at each change."""

    def __init__(
        self,
        addresses: Sequence[str],
        credentials: Credentials | None,
        on_ready: Callable[[], None],
        on_down: Callable[[Diagnosis], None],
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
    ) -> None:
        self.addresses = list(addresses)
        self.credentials = credentials
        self.tls = tls
        self._token = token
        self.ready = False
        self.diagnosis: Diagnosis | None = None
        self._names = ", ".join(re.sub(r"^.*(://|@)", "", each) for each in addresses)  # without passwords
        self._on_ready = on_ready
        self._on_down = on_down
        self._answered = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def reason(self) -> str:
        """The diagnosis as a sentence, also before there is one; empty while the store serves."""
        if self.ready:
            return ""
        return self.diagnosis.text if self.diagnosis else f"the store at {self._names} was not asked yet"

    async def start(self, wait_seconds: float = READY_WAIT_SECONDS) -> bool:
        """Begin to ask, and wait for a while; whether it is ready."""
        self._task = asyncio.get_running_loop().create_task(self._watch())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._answered.wait(), wait_seconds)
        return self.ready

    async def stop(self) -> None:
        """Stop asking."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _watch(self) -> None:
        probe = Probe(self.addresses, self.credentials, self.tls, self._token)
        try:
            while True:
                answer = await probe.ask()
                if answer.outcome is Outcome.ANSWERED:
                    self._up()
                else:
                    advice = _advice(answer.error, self.tls is not None)
                    self._down(Diagnosis(Trouble.OTHER, f"{answer.reason} at {self._names}{advice}"))
                await asyncio.sleep(PROBE_SECONDS)
        finally:
            await probe.close()

    def _up(self) -> None:
        if not self.ready:
            self.ready, self.diagnosis = True, None
            self._answered.set()
            self._on_ready()

    def _down(self, diagnosis: Diagnosis) -> None:
        changed = self.ready or self.diagnosis != diagnosis
        self.ready, self.diagnosis = False, diagnosis
        if changed:
            self._on_down(diagnosis)


def _advice(error: Exception | None, has_tls: bool) -> str:
    """What to look at, where that can be said."""
    match error:
        case ssl.SSLCertVerificationError() if not has_tls:
            return "; it asks for TLS: write tls:// in store.servers, and see store.ca"
        case ssl.SSLCertVerificationError() if "mismatch" in error.verify_message.lower():
            return "; its certificate has to name the address in store.servers"
        case ssl.SSLCertVerificationError():
            return "; see store.ca"
        case NoTlsError():
            return "; store.servers says tls://"
        case CertificateRefusedError():
            return "; see store.cert and store.key"
        case nats.errors.Error() if REFUSAL in str(error).lower():
            return "; see store.user and store.password, or store.token"
        case _:
            return ""
