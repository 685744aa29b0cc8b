"""Starts the brokers that are compared: each a fresh process on free loopback ports, stopped when its load is over."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.certificates import Certificates

READY_TIMEOUT_S: Final = 60.0
READY_POLL_S: Final = 0.005
PR_SET_PDEATHSIG: Final = 1  # prctl(2)
STOP_TIMEOUT_S: Final = 30.0
_LOOPBACK: Final = "127.0.0.1"


class BrokerError(Exception):
    """A broker is not installed or did not start."""


@dataclass(frozen=True, slots=True)
class Running:
    """A broker that takes connections."""

    pid: int
    port: int
    tls_port: int | None
    http_port: int | None
    folder: Path
    """Where the broker keeps its data, if it keeps any."""
    started_at: float
    """Monotonic seconds: when its process was started."""
    ready_at: float
    """Monotonic seconds: when it was seen to take connections."""

    @property
    def start_s(self) -> float:
        return self.ready_at - self.started_at


@dataclass(frozen=True, slots=True)
class Ports:
    mqtt: int
    tls: int | None = None
    http: int | None = None


class Broker(ABC):
    """How to start one kind of broker."""

    name: str

    @abstractmethod
    def version(self) -> str:
        """What stands in the results; raises BrokerError when the broker is not there."""

    @abstractmethod
    def command(self, folder: Path, certificates: Certificates | None, *, durable: bool) -> list[str]:
        """Write what the broker needs into ``folder``, and say how to start it."""

    @abstractmethod
    def ready(self, output: Path, /) -> Ports | None:
        """The ports once connections are taken; None before."""

    @contextmanager
    def running(
        self,
        certificates: Certificates | None = None,
        cpu: int | None = None,
        *,
        durable: bool = False,
        folder: Path | None = None,
    ) -> Iterator[Running]:
        """A fresh broker; with ``cpu`` it and everything that it starts stay on that processor.

        ``durable``: what it has acknowledged is to survive a restart. With a ``folder`` it goes on from what is there.
        """
        with tempfile.TemporaryDirectory(prefix="brookmq-bench-") as name:
            place = folder or Path(name)
            output = Path(name) / "output"
            command = self.command(place, certificates, durable=durable)
            started_at = time.monotonic()
            with output.open("wb") as stream, _on_cpu(cpu):
                process = subprocess.Popen(
                    command,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    preexec_fn=_end_with_parent,  # noqa: PLW1509 - it makes one system call
                )
            try:
                ports = self._wait_until_ready(process, output)
                ready_at = time.monotonic()
                yield Running(process.pid, ports.mqtt, ports.tls, ports.http, place, started_at, ready_at)
            finally:
                _stop(process)

    def _wait_until_ready(self, process: subprocess.Popen[bytes], output: Path) -> Ports:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline and process.poll() is None:
            ports = self.ready(output)
            if ports is not None:
                return ports
            time.sleep(READY_POLL_S)
        raise BrokerError(f"{self.name} did not start:\n{output.read_text(errors='replace')[-2000:]}")


class Mosquitto(Broker):
    """Debian's package, told to drop nothing; on disk it keeps what it has only when asked to.

    Its persistence is a snapshot of everything, written when it is stopped and every ``autosave_interval``: here the
    default, half an hour. Nothing is synced before an acknowledgement.
    """

    name = "mosquitto"

    def __init__(self) -> None:
        self._ports = Ports(0)

    @staticmethod
    def _program() -> str:
        program = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
        if program is None:
            raise BrokerError("mosquitto is not installed (Debian: apt-get install mosquitto)")
        return program

    @classmethod
    def install(cls) -> None:
        """Get Debian's package when it is missing and this user may install packages."""
        try:
            cls._program()
        except BrokerError:
            if shutil.which("apt-get") is None or os.geteuid() != 0:
                raise
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run(["apt-get", "update", "-q"], check=True, env=environment)
            subprocess.run(["apt-get", "install", "-y", "-q", "mosquitto"], check=True, env=environment)

    def version(self) -> str:
        text = subprocess.run([self._program(), "-h"], capture_output=True, text=True, check=False).stdout
        found = re.search(r"version (\S+)", text)
        return found.group(1) if found else "unknown"

    def command(self, folder: Path, certificates: Certificates | None, *, durable: bool) -> list[str]:
        lines = [
            "allow_anonymous true",
            "log_dest none",
            "set_tcp_nodelay true",
            "max_queued_messages 0",
            "max_queued_bytes 0",
            "max_inflight_messages 0",
            f"listener {(port := free_port())} {_LOOPBACK}",
        ]
        lines += ["persistence true", f"persistence_location {folder}/"] if durable else ["persistence false"]
        tls_port = None
        if certificates is not None:
            tls_port = free_port()
            lines += [
                f"listener {tls_port} {_LOOPBACK}",
                f"certfile {certificates.certificate}",
                f"keyfile {certificates.key}",
            ]
        if os.geteuid() == 0:
            lines.append("user root")  # the key file is readable for us alone
        self._ports = Ports(port, tls_port)
        configuration = folder / "mosquitto.conf"
        configuration.write_text("\n".join(lines) + "\n")
        return [self._program(), "-c", str(configuration)]

    def ready(self, _output: Path) -> Ports | None:
        answers = all(_accepts(port) for port in (self._ports.mqtt, self._ports.tls) if port is not None)
        return self._ports if answers else None


class BrookMQ(Broker):
    """The node of this checkout, as a user starts it: what it acknowledges to kept sessions is synced, always."""

    name = "brookmq"

    @staticmethod
    def _program() -> str:
        program = Path(sys.executable).with_name("brookmq")
        if not program.exists():
            raise BrokerError("brookmq is not installed next to this Python; run `make setup`")
        return str(program)

    def version(self) -> str:
        result = subprocess.run([self._program(), "--version"], capture_output=True, text=True, check=False)
        return result.stdout.strip().removeprefix("brookmq ") or "unknown"

    def command(self, folder: Path, certificates: Certificates | None, *, durable: bool) -> list[str]:
        command = [self._program(), "start", "--data-dir", str(folder / "data"), "--http", f"{_LOOPBACK}:0"]
        if certificates is None:
            return [*command, "--mqtt", f"{_LOOPBACK}:0"]
        configuration = folder / "brookmq.toml"
        configuration.write_text(
            f'[listeners.plain]\nbind = "{_LOOPBACK}:0"\n\n'
            f'[listeners.secure]\ntype = "tls"\nbind = "{_LOOPBACK}:0"\n'
            f'tls = {{ cert = "{certificates.certificate}", key = "{certificates.key}" }}\n'
        )
        return [*command, "--config", str(configuration)]

    def ready(self, output: Path) -> Ports | None:
        found = re.search(r"^brookmq ready .*$", output.read_text(errors="replace"), re.MULTILINE)
        if found is None:
            return None
        addresses = dict(part.split("=", 1) for part in found.group().split() if "=" in part)
        tls = addresses.get("tls")
        return Ports(_port_of(addresses["mqtt"]), _port_of(tls) if tls else None, _port_of(addresses["http"]))


BROKERS: Final[dict[str, Broker]] = {broker.name: broker for broker in (Mosquitto(), BrookMQ())}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _port_of(addresses: str) -> int:
    return int(addresses.split(",", maxsplit=1)[0].rpartition(":")[2])


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((_LOOPBACK, port)) == 0


@contextmanager
def _on_cpu(cpu: int | None) -> Iterator[None]:
    """What is started inside inherits the processor."""
    if cpu is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _end_with_parent() -> None:
    """In the child: a run that is killed leaves no broker behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
