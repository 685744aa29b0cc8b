"""What a CONNECT is asked: may it come in?

1. Every ``connect`` hook may refuse it.
2. The ``authenticate`` hooks are asked in turn; the first that knows the client decides.
3. Nobody knew it: with no authenticator at all the client comes in (a node that was just installed works), otherwise it
   is refused with 0x86. ``anonymous`` overrides both.

Most nodes have no hooks here or only ones that answer in place: ``needs_wait`` is False then, and a CONNECT is decided
in the callback that read it, without a task.
"""

from __future__ import annotations

from brookmq.access.hooks import Hooks
from brookmq.access.points import ALLOW, BAD_USER_NAME_OR_PASSWORD, Allow, Credentials, Decision, Deny


class Authentication:
    """The chain of a node. ``anonymous`` None: clients whom nobody knows come in while there is no authenticator."""

    def __init__(self, hooks: Hooks, anonymous: bool | None = None) -> None:
        self.anonymous = anonymous
        self._hooks = hooks

    @property
    def asks(self) -> bool:
        """Whether there is anybody to ask; if not, ``unasked`` is the decision."""
        return bool(self._hooks.connect or self._hooks.authenticate)

    def unasked(self) -> Allow | Deny:
        return self._unknown()

    @property
    def needs_wait(self) -> bool:
        """Whether a CONNECT can only be decided by ``await decide``."""
        return self._hooks.connect_waits or self._hooks.authenticate_waits

    def decide_now(self, credentials: Credentials) -> Allow | Deny:
        """Decide in place; only while not ``needs_wait``."""
        if self._hooks.connect:
            decision = self._hooks.connect_now(credentials)
            if isinstance(decision, Deny):
                return decision
        if self._hooks.authenticate:
            return self._conclude(self._hooks.authenticate_now(credentials))
        return self._unknown()

    async def decide(self, credentials: Credentials) -> Allow | Deny:
        """Decide, waiting for the hooks that need it."""
        if self._hooks.connect:
            decision = await self._hooks.run_connect(credentials)
            if isinstance(decision, Deny):
                return decision
        if self._hooks.authenticate:
            return self._conclude(await self._hooks.run_authenticate(credentials))
        return self._unknown()

    def _conclude(self, decision: Decision) -> Allow | Deny:
        return decision if isinstance(decision, Allow | Deny) else self._unknown()

    def _unknown(self) -> Allow | Deny:
        welcome = not self._hooks.authenticate if self.anonymous is None else self.anonymous
        return ALLOW if welcome else Deny(BAD_USER_NAME_OR_PASSWORD)
