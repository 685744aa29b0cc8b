"""Logging: lines for people or JSON objects for machines, on top of Python's own ``logging``.

Modules write ``log.info("client connected", extra={"client_id": …})``: a fixed message and fields beside it, so that a
machine can search for either. Nothing is logged on the path of a message. What comes from a peer (client ids, topics)
is escaped, since a line break in a client id must not become a line of the log.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from typing import TextIO

from brookmq.base.config import Log, LogLevel
from brookmq.base.errors import CallerError, ConfigError

LOGGER = "brookmq"

_LEVELS: dict[LogLevel, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
_COLOURS = {
    logging.DEBUG: "\033[2m",
    logging.INFO: "\033[32m",
    logging.WARNING: "\033[33m",
    logging.ERROR: "\033[31m",
    logging.CRITICAL: "\033[1;31m",
}
_DIM, _PLAIN = "\033[2m", "\033[0m"

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """What the caller gave as ``extra``: everything that a record does not have of itself."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _escaped(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _word(value: object) -> str:
    """A field's value as one word of a human line."""
    text = str(value)
    return text if text.isprintable() and text and not set(text) & set(' "=') else json.dumps(text, ensure_ascii=False)


class HumanFormatter(logging.Formatter):
    """``12:30:05.123 INFO edge: listening address=127.0.0.1:1883``, with the day in front."""

    def __init__(self, coloured: bool) -> None:
        super().__init__()
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).astimezone().isoformat(" ", "milliseconds")[:23]
        level, name = record.levelname, record.name.removeprefix(LOGGER + ".")
        fields = "".join(f" {key}={_escaped(_word(value))}" for key, value in fields_of(record).items())
        if self._coloured:
            time, fields = f"{_DIM}{time}{_PLAIN}", f"{_DIM}{fields}{_PLAIN}" if fields else ""
            level = f"{_COLOURS.get(record.levelno, '')}{level}{_PLAIN}"
        line = f"{time} {level} {name}: {_escaped(record.getMessage())}{fields}"
        trace = self._trace(record)
        return f"{line}\n{trace}" if trace else line

    def _trace(self, record: logging.LogRecord) -> str:
        parts = [self.formatException(record.exc_info)] if record.exc_info else []
        return "\n".join([*parts, *([self.formatStack(record.stack_info)] if record.stack_info else [])])


class JsonFormatter(logging.Formatter):
    """One object per line: time (UTC), level, logger, message, then the caller's fields."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {name: value for name, value in fields_of(record).items() if name not in entry}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def _handler(config: Log, stream: TextIO) -> logging.Handler:
    if not config.file:
        return logging.StreamHandler(stream)
    try:
        return RotatingFileHandler(
            config.file, maxBytes=config.rotate_bytes, backupCount=config.rotate_count, encoding="utf-8"
        )
    except OSError as error:
        raise ConfigError("log.file", f"cannot write {config.file}: {error.strerror}") from None


def configure(config: Log, stream: TextIO | None = None) -> None:
    """Sends all logging where the configuration says; called once at start, and again replaces what was there."""
    stream = stream or sys.stderr
    handler = _handler(config, stream)
    coloured = not config.file and stream.isatty() and not os.environ.get("NO_COLOR")
    handler.setFormatter(JsonFormatter() if config.format == "json" else HumanFormatter(coloured))
    root = logging.getLogger()
    for old in root.handlers[:]:
        if getattr(old, "is_brookmq", False):
            root.removeHandler(old)
            old.close()
    handler.is_brookmq = True  # type: ignore[attr-defined]
    root.addHandler(handler)
    root.setLevel(logging.WARNING)  # of other packages only what matters
    logging.captureWarnings(True)
    set_level(config.level)


def set_level(name: LogLevel) -> None:
    """Takes effect at once; the configuration file is not changed."""
    if name not in _LEVELS:
        raise CallerError(f"no such log level: {name}")
    logging.getLogger(LOGGER).setLevel(_LEVELS[name])


def level() -> LogLevel:
    """The level in force."""
    current = logging.getLogger(LOGGER).getEffectiveLevel()
    return next((name for name, number in _LEVELS.items() if number >= current), "critical")
