"""CPU time of processes, from the system's own counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def java_of(spark: SparkSession) -> psutil.Process:
    """The JVM, whose children are the Python workers."""
    machine = spark.sparkContext._jvm  # noqa: SLF001 - there is no other way to ask it
    assert machine is not None
    return psutil.Process(machine.java.lang.ProcessHandle.current().pid())


def own_cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def cpu_s(root: psutil.Process) -> float:
    """CPU seconds of a process with all its children, those that have ended included."""
    own = root.cpu_times()
    total = float(own.user + own.system + own.children_user + own.children_system)
    for child in root.children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
