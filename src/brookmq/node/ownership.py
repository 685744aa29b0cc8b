"""Whose store it is: one node's at a time, the one that has seized the sessions' log last.

Journal and tables are logs of their own, seized one after the other. Two nodes that start on one store at the same time
could each get some of them; so one log decides for all. Its ownership records say who it was, for people: two nodes by
mistake often have the same name.
"""

from __future__ import annotations

import os
import secrets
import socket
from base64 import b64decode
from typing import Final

from brookmq.store.errors import NO_MESSAGE, Refused
from brookmq.store.link import Link
from brookmq.store.log import ownership_subject
from brookmq.store.record import decode_ownership

SESSIONS: Final = "sessions"  # the table whose log decides


class Ownership:
    """``label`` is what this run of the node calls itself in the logs that it seizes: no two runs are alike."""

    def __init__(self, link: Link, node_name: str) -> None:
        self._link = link
        self.label = f"{node_name} {os.getpid()}@{socket.gethostname()} {secrets.token_hex(8)}".encode()

    async def other(self) -> str:
        """Who owns the store instead of this node; empty: nobody does. Raises ``StoreError``: it can't be said now.

        Asked once this node has seized the log. A record that is gone was its own, purged behind its snapshots:
        another's would be newer than all that was purged.
        """
        query = {"last_by_subj": ownership_subject(SESSIONS)}
        try:
            answer = await self._link.api(f"STREAM.MSG.GET.{SESSIONS.upper()}", query)
        except Refused as refusal:
            if refusal.code == NO_MESSAGE:
                return ""
            raise
        label = decode_ownership(b64decode(answer["message"]["data"]))[1]
        return "" if label == self.label else described(label)


def described(label: bytes) -> str:
    """A label for people."""
    name, *parts = label.decode("utf-8", "replace").rsplit(" ", 2)
    process, _, host = parts[0].partition("@") if parts else ("", "", "")
    return f"{name} (process {process} on {host})" if host else name or "somebody without a name"
