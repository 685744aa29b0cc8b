"""A real `brookmq pipeline run` in its own process, and the node that it runs for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pyarrow as pa
from deltalake import DeltaTable

WAIT_S = 300.0  # for what takes seconds: Spark starts, on a machine that may have other things to do
STOP_S = 60.0


def ask(url: str, method: str, path: str, body: object = None) -> Any:
    """The decoded answer of a node; AssertionError with what it says if that is a refusal."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"{url}/api/v1{path}", data, {"Content-Type": "application/json"}, method=method)
    try:
        with urlopen(request, timeout=WAIT_S) as answer:
            content = answer.read()
    except HTTPError as error:
        raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from None
    return json.loads(content) if content else None


def delta_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a Delta table; none if it is not there yet."""
    if not DeltaTable.is_deltatable(str(path)):
        return []
    table: pa.Table = DeltaTable(str(path)).to_pyarrow_table()
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def await_(condition: Callable[[], bool], told: Callable[[], object]) -> None:
    """Until the condition holds; ``told`` says what there was instead."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, told()
        time.sleep(0.1)


class PipelineProcess:
    """Prints JSON, which is read as it comes."""

    def __init__(self, url: str, data_dir: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "brookmq", "pipeline", "run", "--servers", url, "--data-dir", str(data_dir)]
        data_dir.mkdir(parents=True, exist_ok=True)
        self._log_path = data_dir / "stderr.log"
        self._log = self._log_path.open("ab")
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            [*command, "--master", "local[2,4]", "--json", *arguments],
            stdout=subprocess.PIPE,
            stderr=self._log,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        self.lines: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    @property
    def queries(self) -> dict[str, dict[str, Any]]:
        """What it last told of each query."""
        for line in reversed(self.lines):
            if "queries" in line:
                return {query["name"]: query for query in line["queries"]}
        return {}

    def has_written(self) -> bool:
        """Whether a query has finished a batch."""
        return any(query["batch"] >= 0 for query in self.queries.values())

    def await_query(self, name: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        await_(lambda: name in self.queries and condition(self.queries[name]), self.told)
        return self.queries[name]

    def told(self) -> str:
        return f"exit code {self.process.poll()}, last: {self.lines[-3:]}, log: {self._log_path.read_text()}"

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.wait(STOP_S)

    def wait(self, seconds: float = WAIT_S) -> int:
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"it does not end: {self.told()}") from None
        finally:
            self._reader.join(STOP_S)
            self._log.close()
            if self.process.stdout is not None:
                self.process.stdout.close()
        return code
