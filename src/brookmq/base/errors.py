"""The errors of BrookMQ: one root, split by whose fault it is and so by what to do.

BrookError
├── PeerError         a client broke the protocol or a limit: answer with its reason code, close
├── CallerError       our own code called wrongly: a bug
├── OperationError    the world is in the way (port in use, disk full): say it, retry or degrade
│   └── ConfigError   the configuration is wrong: one line with the key's path, exit code 2
└── InvariantError    what must always hold does not: crash rather than go on
"""

from __future__ import annotations


class BrookError(Exception):
    """The root of every error that BrookMQ raises on purpose."""


class PeerError(BrookError):
    """The peer's fault. ``reason`` is the MQTT 5 reason code that it is told before we close."""

    def __init__(self, reason: int, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class CallerError(BrookError):
    """A bug of ours: an argument or a call that the contract forbids."""


class OperationError(BrookError):
    """Something outside is in the way; nothing is lost, and it may work later."""


class ConfigError(OperationError):
    """A wrong configuration. ``path`` names the key, such as ``listeners.default.bind``."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class InvariantError(BrookError):
    """What must always hold does not hold."""
