"""What can go wrong between a node and its store, split by what the caller does next.

OperationError
└── StoreError
    ├── Ambiguous        no answer, or one that proves nothing: it may be stored or not, so look before trying again
    ├── Conflict         another write came first: read, then decide
    ├── StoreFull        no room on the store's disk or within its limits: wait and say so
    ├── StreamNotFound   the stream was never declared, or is gone
    ├── Refused          any other answer that says no, with its code
    ├── Deposed          another appender owns the log; what had no answer yet may be stored or not
    ├── NotOwner         the log was not seized: nothing was sent
    ├── QueueFull        the log's queue is at its bound: nothing was taken, slow down
    ├── RecordsLost      the store has forgotten what it acknowledged
    ├── BadRecord        a record that this version can't read
    └── Gap              records that were asked for are gone (retention, purge)
CallerError
└── RecordTooLarge       larger than the store takes: a bug, as the caller cuts its batches

The store's own codes are numbers that stay the same across its releases, while its texts don't: only the numbers are
looked at.
"""

from __future__ import annotations

from typing import Final

from brookmq.base.errors import CallerError, OperationError

# 10164 is a conflict with a write that is still under way; to the writer it is the same answer.
CONFLICT_CODES: Final = frozenset({10071, 10164})
# Limits of the account, of the server's storage and memory, a store that could not write (a full disk is 10077).
FULL_CODES: Final = frozenset({10002, 10023, 10028, 10047, 10053, 10077})
# No leader, not yet assigned, shutting down, too many requests: the server that answered can't know the outcome.
UNAVAILABLE_CODES: Final = frozenset({10004, 10007, 10008, 10009, 10035, 10039, 10041, 10076, 10118, 10167})
STREAM_NOT_FOUND: Final = 10059
NAME_IN_USE: Final = 10058
NO_MESSAGE: Final = 10037


class StoreError(OperationError):
    """The store said no, or did not say anything."""


class Ambiguous(StoreError):  # noqa: N818 - named by what happened
    """The outcome is not known: a time limit passed, nobody answered, the connection went."""


class Conflict(StoreError):  # noqa: N818 - named by what happened
    """The expected sequence was not the last one."""


class StoreFull(StoreError):  # noqa: N818 - named by what happened
    """The store has no room."""


class StreamNotFound(StoreError):  # noqa: N818 - named by what happened
    """There is no such stream."""


class Refused(StoreError):  # noqa: N818 - named by what happened
    """A refusal that trying again does not change. ``code`` is the store's number for it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Deposed(StoreError):  # noqa: N818 - named by what happened
    """Another appender has seized the log. What waits is not known to be stored."""


class NotOwner(StoreError):  # noqa: N818 - named by what happened
    """This appender does not own the log (any more)."""


class QueueFull(StoreError):  # noqa: N818 - named by what happened
    """The queue in front of the store is at its bound; the record was not taken."""


class RecordsLost(StoreError):  # noqa: N818 - named by what happened
    """The store's last record is older than what it acknowledged to us."""


class BadRecord(StoreError):  # noqa: N818 - named by what happened
    """A record without the header that every record has, or with a newer format."""


class Gap(StoreError):  # noqa: N818 - named by what happened
    """Sequences ``first`` to ``last`` are not in the stream any more."""

    def __init__(self, stream: str, first: int, last: int) -> None:
        super().__init__(f"{stream}: sequences {first} to {last} are gone")
        self.first = first
        self.last = last


class RecordTooLarge(CallerError):  # noqa: N818 - named by what happened
    """A record above the limit of the store."""


def error_of_answer(error: dict[str, object], what: str) -> StoreError:
    """The error for the ``error`` object of an answer of the store's API; ``what`` names the stream or request."""
    code = error.get("err_code", 0)
    message = f"{what}: {error.get('description', 'refused')} ({code})"
    if code in CONFLICT_CODES:
        return Conflict(message)
    if code in FULL_CODES:
        return StoreFull(message)
    if code in UNAVAILABLE_CODES:
        return Ambiguous(message)
    if code == STREAM_NOT_FOUND:
        return StreamNotFound(message)
    return Refused(code if isinstance(code, int) else 0, message)
