"""The data folder of a pipeline: one pipeline at a time has it.

    DATA_DIR/lock, id, log4j2.properties, spark.log, output.log, queries/…

In ``id`` stands what the pipeline that has it calls itself. The next one finds out so that the one which its node heard
of a moment ago is not another one that runs elsewhere.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final
from uuid import uuid4

from brookmq.base.errors import OperationError

LOG_BYTES_MAX: Final = "10MB"
LOGS_KEPT: Final = 3
OUTPUT_BYTES_MAX: Final = 10_000_000  # at a start, above which it begins anew
_OUTPUTS: Final = (1, 2)  # standard output, standard error
_LOGGING: Final = """\
# Written by `brookmq pipeline run` at each start.
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {folder}/spark.log
appender.file.filePattern = {folder}/spark.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = {size}
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = {kept}
"""
_USUAL: Final = (  # warnings about what is meant to be so
    "org.apache.spark.sql.execution.streaming.runtime.ResolveWriteToStream",
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",
    "org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor",
    "org.apache.spark.scheduler.FairSchedulableBuilder",
)


class DataFolder:
    """Held as long as this object lives."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.path / "lock")
            self.previous_id = self._read("id")
            self.id = str(uuid4())
            self._write("id", self.id)
            self._write("log4j2.properties", self._logging())
        except BlockingIOError:
            raise OperationError(
                f"another pipeline runs with the folder {self.path}; stop it, or take another --data-dir"
            ) from None
        except OSError as error:
            raise OperationError(f"the folder {self.path} can't be used: {error}") from None

    @property
    def logging(self) -> Path:
        """Settings with which what Spark logs goes to a file, and not over the display."""
        return self.path / "log4j2.properties"

    @contextmanager
    def output_kept(self) -> Iterator[None]:
        """Processes that are started meanwhile, and those that they start, print into a file: a terminal has a table,
        and a program wants JSON."""
        path = self.path / "output.log"
        if path.exists() and path.stat().st_size > OUTPUT_BYTES_MAX:
            path.unlink()
        before = [os.dup(number) for number in _OUTPUTS]
        sys.stdout.flush()
        with path.open("ab") as file:
            for number in _OUTPUTS:
                os.dup2(file.fileno(), number)
        try:
            yield
        finally:
            for number, kept in zip(_OUTPUTS, before, strict=True):
                os.dup2(kept, number)
                os.close(kept)

    def release(self) -> None:
        self._lock.close()

    def _read(self, name: str) -> str | None:
        path = self.path / name
        return path.read_text().strip() if path.exists() else None

    def _logging(self) -> str:
        lines = [_LOGGING.format(folder=self.path, size=LOG_BYTES_MAX, kept=LOGS_KEPT)]
        for number, name in enumerate(_USUAL):
            lines += [f"logger.usual{number}.name = {name}", f"logger.usual{number}.level = error"]
        return "\n".join([*lines, ""])

    def _write(self, name: str, text: str) -> None:
        temporary = self.path / f"{name}.new"
        temporary.write_text(text)
        temporary.replace(self.path / name)


def _locked(path: Path) -> IO[str]:
    """A file that nobody else has while it is open; BlockingIOError if somebody has."""
    file = path.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file
