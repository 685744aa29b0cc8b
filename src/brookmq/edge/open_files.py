"""How many files this process may have open, which is how many connections fit.

Every connection is an open file. The soft limit that a shell gives (often 1,024) is far below what the node may ask
for, so it raises it at start and says what fits. Some files are kept back for everything else: listeners, the HTTP
server, logs, modules that are loaded later.
"""

from __future__ import annotations

import resource
from typing import NamedTuple

from brookmq.base.errors import ConfigError

RESERVED_FILES = 128  # kept back for all that is not an MQTT connection
# Where the hard limit is "unlimited" the kernel still wants a number; this is its own default bound (fs.nr_open).
OPEN_FILES_MAX = 1_048_576


class OpenFiles(NamedTuple):
    """The limit in force, and how many connections fit under it."""

    limit: int
    connections: int

    def __str__(self) -> str:
        return f"{self.limit:,} open files: room for {self.connections:,} connections"


def raise_open_files(wanted: int | None = None) -> OpenFiles:
    """Raise the soft limit to ``wanted`` or, without it, to the hard limit; it is never lowered below what is set.

    Asking for more than the hard limit is an error rather than a silent less: who configures a number counts on it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ceiling = OPEN_FILES_MAX if hard == resource.RLIM_INFINITY else hard
    target = wanted or ceiling
    if target > ceiling and not _raise_hard(target):
        raise ConfigError(
            "edge.open_files",
            f"{target:,} open files are more than the system allows this process ({ceiling:,}); see `ulimit -Hn`",
        )
    if soft != resource.RLIM_INFINITY and soft < target:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        soft = target
    limit = OPEN_FILES_MAX if soft == resource.RLIM_INFINITY else soft
    return OpenFiles(limit, max(1, limit - RESERVED_FILES))


def _raise_hard(target: int) -> bool:
    """Only a privileged process may; a container's root often can."""
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, target))
    except (ValueError, OSError):
        return False
    return True
