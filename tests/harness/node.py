"""A real node in its own process, started as a user starts it."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tests.harness.raw import Address

READY_SECONDS = 60.0  # promised within 2; a loaded machine with several nodes starting at once needs more
STOP_SECONDS = 60.0
PR_SET_PDEATHSIG = 1  # prctl(2)
COMPLAINTS = re.compile(r"^Traceback \(most recent call last\)|never retrieved|was never awaited", re.MULTILINE)


class Broker(Protocol):
    """Where a test connects to."""

    mqtt: Address
    websocket: Address | None


def _end_with_parent() -> None:
    """In the child: a test run that is killed leaves no node behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class NotReadyError(AssertionError):
    """A node that did not come up; the message has its log."""


def parse_address(text: str) -> Address:
    """`host:port` with an IPv6 host in brackets."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


class Node:
    """One `brookmq start`; `config` is the text of a TOML file, `program` replaces the command.

    A configuration with listeners of its own keeps them; else there is one for TCP on a free port. The same holds for
    its `[http]`.
    """

    def __init__(
        self,
        folder: Path,
        config: str = "",
        *,
        arguments: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        program: tuple[str, ...] = (sys.executable, "-m", "brookmq"),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.log_path = folder / "node.log"
        command = [*program, "start", "--data-dir", str(folder / "data")]
        if "[http]" not in config:
            command += ["--http", "127.0.0.1:0"]
        if "[listeners." not in config:
            command += ["--mqtt", "127.0.0.1:0"]
        if config:
            file = folder / "brookmq.toml"
            file.write_text(config)
            command += ["--config", str(file)]
        self._log = self.log_path.open("wb")
        self._reader: threading.Thread | None = None
        self.process = subprocess.Popen(  # its stdout has the ready line alone; logs go to stderr
            [*command, *arguments],
            stdout=subprocess.PIPE,
            stderr=self._log,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - it makes one system call
        )
        self.ready = self._wait_until_ready()
        self.listeners = dict(pair.split("=", 1) for pair in self.ready.split()[2:])
        self.mqtt = self.address("mqtt") or ("", 0)
        self.http = self.address("http") or ("", 0)
        self.websocket = self.address("ws")

    def address(self, kind: str, which: int = 0) -> Address | None:
        """The address of a listener: mqtt, http, tls, ws, wss."""
        found = self.listeners.get(kind, "")
        return parse_address(found.split(",")[which]) if found else None

    def _wait_until_ready(self) -> str:
        stdout = self.process.stdout
        assert stdout is not None
        timer = threading.Timer(READY_SECONDS, self.process.kill)  # ends the read below
        timer.start()
        try:
            for raw in stdout:
                line = raw.decode(errors="replace").strip()
                if line.startswith("brookmq ready "):
                    self._reader = threading.Thread(target=stdout.read, daemon=True)  # a full pipe would stop the node
                    self._reader.start()
                    return line
        finally:
            timer.cancel()
        self.process.wait()
        stdout.close()
        self._log.close()
        raise NotReadyError(f"exit code {self.process.returncode}, log:\n{self.log()}")

    def log(self) -> str:
        """What the node has logged so far."""
        return self.log_path.read_text(errors="replace")

    def stop(self) -> int:
        """SIGTERM and wait; gives the exit code. The log must be clean."""
        code = self._end(signal.SIGTERM)
        self.check_log()
        return code

    def kill(self) -> None:
        """kill -9, as a machine that lost its power."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the node did not end within {STOP_SECONDS} s, log:\n{self.log()}") from None
        finally:
            self._log.close()
            if self._reader is not None and self.process.stdout is not None:
                self._reader.join(STOP_SECONDS)
                self.process.stdout.close()
        return code

    def check_log(self) -> None:
        """No traceback and no forgotten coroutine, whatever the clients did."""
        found = COMPLAINTS.search(self.log())
        assert found is None, f"the node's log has {found and found.group()!r}:\n{self.log()}"


class OtherBroker:
    """A broker that runs already: BROOKMQ_TEST_BROKER=host:port, and BROOKMQ_TEST_BROKER_WS for its WebSocket port."""

    def __init__(self) -> None:
        self.mqtt = parse_address(os.environ["BROOKMQ_TEST_BROKER"])
        websocket = os.environ.get("BROOKMQ_TEST_BROKER_WS")
        self.websocket = parse_address(websocket) if websocket else None


def free_port() -> int:
    """A port that was free a moment ago, for programs that cannot choose one themselves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
