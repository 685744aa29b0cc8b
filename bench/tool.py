"""Runs the load tool as a process of its own, so that what it costs is not in the runner's way."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from typing import Any, Final

from bench.brokers import BrokerError

Report = dict[str, Any]

LOAD_TIMEOUT_S: Final = 180.0
TOOL_CPU: Final = 1


def raise_open_file_limit() -> None:
    """Ten thousand connections need as many descriptors on both sides; children inherit the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run_tool(arguments: list[str], *, pinned: bool, timeout_s: float = LOAD_TIMEOUT_S) -> Report:
    """One load; BrokerError with the tool's own line when it failed."""
    pin = ["--cpu", str(TOOL_CPU)] if pinned else []
    command = [sys.executable, "-m", "brookmq.bench", *pin, *arguments, "--json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    if not result.stdout.startswith("{"):
        raise BrokerError(f"{' '.join(arguments)}: {result.stderr.strip()[-1000:]}")
    report: Report = json.loads(result.stdout)
    return report
