"""A store that somebody else runs, by its addresses: the same face as `StoreServer`, without a process.

It is asked once a second; while it does not answer, the reason is told, and it is back when it answers. That it is not
there when the node starts is no error: it may come later.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Sequence

from brookmq.store.diagnosis import Diagnosis, Trouble
from brookmq.store.probe import Outcome, Probe
from brookmq.store.server import PROBE_SECONDS, READY_WAIT_SECONDS
from brookmq.store.settings_file import Credentials


class ExternalStore:
    """``on_ready()`` and ``on_down(diagnosis)`` are called on the loop, at each change."""

    def __init__(
        self,
        addresses: Sequence[str],
        credentials: Credentials | None,
        on_ready: Callable[[], None],
        on_down: Callable[[Diagnosis], None],
    ) -> None:
        self.addresses = list(addresses)
        self.credentials = credentials
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
        probe = Probe(self.addresses, self.credentials)
        try:
            while True:
                answer = await probe.ask()
                if answer.outcome is Outcome.ANSWERED:
                    self._up()
                else:
                    self._down(Diagnosis(Trouble.OTHER, f"{answer.reason} at {self._names}"))
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
