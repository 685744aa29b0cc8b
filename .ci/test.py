"""Runs the tests in both forms of the hot modules and prints both results.

Everything runs with the modules as installed (compiled where there was a compiler); the suites that touch hot modules
run once more with BROOKMQ_PURE=1. Arguments go to pytest in both runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

HOT_SUITES = ["tests/mqtt", "tests/broker", "tests/spec"]
# What tests the tests, or runs the same machines for a minute, tells nothing new in the other form.
ONCE = ["--ignore=tests/spec/test_broken.py", "--ignore=tests/broker/test_durability_simulation.py"]
RESULTS = Path("build/tests")


def form(environment: dict[str, str]) -> str:
    """What is really under test: ``compiled`` or ``plain Python``."""
    question = "from brookmq import _pure; print(_pure.form())"
    answer = subprocess.run(
        [sys.executable, "-c", question], env=environment, check=True, capture_output=True, text=True
    )
    return answer.stdout.strip()


def run(title: str, suites: list[str], environment: dict[str, str], arguments: list[str]) -> tuple[str, bool]:
    report = RESULTS / f"{title.replace(' ', '-')}.xml"
    report.unlink(missing_ok=True)
    actual = form(environment)
    print(f"\n── {title}: {' '.join(suites) or 'all tests'} ({actual})", flush=True)
    # Six at a time: much of a test is waiting for other processes. What shares a Spark session stays together.
    shared = ["-n", "6", "--dist", "loadgroup"]
    command = [sys.executable, "-m", "pytest", *shared, f"--junitxml={report}", *suites, *arguments]
    passed = subprocess.run(command, env=environment, check=False).returncode == 0
    return f"{'passed' if passed else 'FAILED'}  {title} ({actual}): {counts(report)}", passed


def counts(report: Path) -> str:
    if not report.exists():
        return "no result"
    suite = ET.parse(report).getroot().find("testsuite")
    if suite is None:
        return "no result"
    names = {"tests": "tests", "failures": "failed", "errors": "errors", "skipped": "skipped"}
    figures = [
        f"{suite.get(key, '0')} {word}" for key, word in names.items() if key == "tests" or suite.get(key) != "0"
    ]
    return f"{', '.join(figures)} in {float(suite.get('time', '0')):.0f} s"


def main() -> int:
    RESULTS.mkdir(parents=True, exist_ok=True)
    arguments = sys.argv[1:]
    installed = {key: value for key, value in os.environ.items() if key != "BROOKMQ_PURE"}
    results = [
        run("as installed", [], installed, arguments),
        run("plain Python", HOT_SUITES, {**installed, "BROOKMQ_PURE": "1"}, [*ONCE, *arguments]),
    ]
    print()
    for line, _ in results:
        print(line)
    return 0 if all(passed for _, passed in results) else 1


if __name__ == "__main__":
    sys.exit(main())
