"""The byte work of the load tool as this machine has it: compiled (``frames``) or plain (``frames_plain``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brookmq.bench.frames import Inbox, Latencies, NullInbox, PublishBlock
else:
    try:
        from brookmq.bench.frames import Inbox, Latencies, NullInbox, PublishBlock
    except ImportError:
        from brookmq.bench.frames_plain import Inbox, Latencies, NullInbox, PublishBlock

COMPILED = PublishBlock.__module__.endswith(".frames")

__all__ = ["COMPILED", "Inbox", "Latencies", "NullInbox", "PublishBlock"]
