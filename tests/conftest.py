"""What holds for all tests: a skipped test fails the run unless tests/allowed_skips.toml names it with its reason.

A skip is silent by nature; a suite that quietly stops testing something looks exactly like one that passes.
"""

from __future__ import annotations

import fnmatch
import logging
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

ALLOWED_SKIPS = Path(__file__).with_name("allowed_skips.toml")

# The machines that run the tests are small and shared: time per example says nothing about the code there.
settings.register_profile("brookmq", deadline=None, print_blob=True)
settings.load_profile("brookmq")

# A Spark that lives long makes a cache for later ones beside it: not beside tests.
os.environ.setdefault("BROOKMQ_JVM_CACHE", "use")

# A Java that lives for seconds has no use for its second compiler, which takes half of the processor's time there.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """What a test does to the levels of logging ends with it: others look for lines in the log."""
    loggers = [logging.getLogger(), logging.getLogger("brookmq")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


class SkipGate:
    """Collects skips, also those of xdist's workers, and fails the run at its end."""

    def __init__(self, allowed: list[str]) -> None:
        self._allowed = allowed
        self._refused: dict[str, str] = {}

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        if any(fnmatch.fnmatchcase(report.nodeid, pattern) for pattern in self._allowed):
            return
        self._refused[report.nodeid] = (
            report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._refused and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._refused:
            return
        terminalreporter.section(f"skips that {ALLOWED_SKIPS.name} does not allow", red=True)
        for node_id, reason in self._refused.items():
            terminalreporter.line(f"{node_id}: {reason}", red=True)


def read_allowed_skips(path: Path) -> list[str]:
    """The patterns of test ids that may be skipped; each entry has to say why."""
    entries = tomllib.loads(path.read_text()).get("skip", [])
    for entry in entries:
        if set(entry) != {"test", "reason"} or not entry["reason"].strip():
            raise pytest.UsageError(f"{path.name}: an entry has exactly `test` and `reason`, this one is {entry}")
    return [entry["test"] for entry in entries]


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # xdist's workers report to the process that started them
        config.pluginmanager.register(SkipGate(read_allowed_skips(ALLOWED_SKIPS)), "brookmq-skip-gate")
