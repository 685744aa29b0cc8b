"""A real Spark cluster on this machine: a master and some workers from the wheel, on ports that the system chooses."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

import brookmq.spark  # the environment gets a Java

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
STARTED_S = 180.0
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for a Java that does little


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """The address for ``master``. Each worker has one core."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        ports = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        log = folder / "master.log"
        processes.append(_start(log, [MASTER, *ports]))
        address = _await(log, r"Starting Spark master at (spark://\S+)", processes[-1])
        for number in range(workers):
            log = folder / f"worker-{number}.log"
            place = ["--work-dir", str(folder / f"work-{number}"), "--cores", "1", "--memory", "1g"]
            processes.append(_start(log, [WORKER, *ports, *place, address]))
        for number in range(workers):
            _await(folder / f"worker-{number}.log", r"Successfully registered with (master)", processes[1 + number])
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(STARTED_S)


def cluster_environment() -> dict[str, str]:
    """What every program of the cluster has."""
    assert brookmq.spark.LOOPBACK == "127.0.0.1"
    home = Path(pyspark.__file__).parent
    options = f"{QUICK} -Dspark.master.rest.enabled=false"  # which has a port of its own
    return {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": options,
        "SPARK_DAEMON_MEMORY": "256m",
    }


def _start(log: Path, arguments: list[str]) -> subprocess.Popen[bytes]:
    environment = cluster_environment()
    program = Path(environment["SPARK_HOME"]) / "bin" / "spark-class"
    with log.open("wb") as output:
        return subprocess.Popen([program, *arguments], env=environment, stdout=output, stderr=subprocess.STDOUT)


def _await(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + STARTED_S
    while (found := re.search(pattern, log.read_text(errors="replace"))) is None:
        assert process.poll() is None, log.read_text(errors="replace")
        assert time.monotonic() < deadline, log.read_text(errors="replace")
        time.sleep(0.05)
    return found.group(1)
