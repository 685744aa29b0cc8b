"""The normative statements that concern a server, and the tests that prove them.

The numbers below are those of the specifications: section and count. What binds only clients is listed and left out;
where a server has to react to a client's breach, the reaction is the statement.

`python -m tests.spec.statements` writes the names of the tests into `statements.toml`, from their marks.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

FILE = Path(__file__).with_name("statements.toml")
ROOT = Path(__file__).parents[2]
WITHOUT_TEST_MAX = 10

# section: how many statements it has (2.2.1 of 5.0 begins with 2)
SECTIONS: dict[str, dict[str, int]] = {
    "5.0": {
        "1.5.4": 3, "1.5.5": 1, "1.5.7": 1, "2.1.3": 1, "2.2.1": 6, "2.2.2": 1, "3.1.0": 2, "3.1.2": 30, "3.1.3": 12,
        "3.1.4": 6, "3.2.0": 2, "3.2.2": 22, "3.3.1": 13, "3.3.2": 20, "3.3.4": 10, "3.4.2": 3, "3.5.2": 3, "3.6.1": 1,
        "3.6.2": 3, "3.7.2": 3, "3.8.1": 1, "3.8.3": 5, "3.8.4": 8, "3.9.2": 2, "3.9.3": 2, "3.10.1": 1, "3.10.3": 2,
        "3.10.4": 6, "3.11.2": 2, "3.11.3": 2, "3.12.4": 1, "3.14.0": 1, "3.14.1": 1, "3.14.2": 4, "3.14.4": 3,
        "3.15.1": 1, "3.15.2": 3, "4.1.0": 2, "4.2.0": 1, "4.3.1": 1, "4.3.2": 5, "4.3.3": 13, "4.4.0": 2, "4.5.0": 2,
        "4.6.0": 6, "4.7.0": 1, "4.7.1": 2, "4.7.2": 1, "4.7.3": 4, "4.8.2": 6, "4.9.0": 3, "4.12.0": 7, "4.12.1": 2,
        "4.13.1": 1, "4.13.2": 1, "6.0.0": 4,
    },
    "3.1.1": {
        "1.5.3": 3, "2.2.2": 2, "2.3.1": 7, "3.1.0": 2, "3.1.2": 24, "3.1.3": 11, "3.1.4": 5, "3.2.0": 1, "3.2.2": 6,
        "3.3.1": 12, "3.3.2": 3, "3.3.4": 1, "3.3.5": 2, "3.6.1": 1, "3.8.1": 1, "3.8.3": 4, "3.8.4": 6, "3.9.3": 2,
        "3.10.1": 1, "3.10.3": 2, "3.10.4": 6, "3.12.4": 1, "3.14.1": 1, "3.14.4": 3, "4.1.0": 2, "4.3.1": 1,
        "4.3.2": 2, "4.3.3": 2, "4.4.0": 1, "4.5.0": 2, "4.6.0": 6, "4.7.1": 3, "4.7.2": 1, "4.7.3": 4, "4.8.0": 2,
        "6.0.0": 4, "7.0.0": 2, "7.1.1": 1, "7.1.2": 1,
    },
}  # fmt: skip
NOT_A_STATEMENT = {("5.0", "2.2.1-1")}
ONLY_CLIENTS: dict[str, set[str]] = {
    "5.0": {
        "3.1.2-20", "3.1.2-21", "3.2.2-4", "3.2.2-5", "3.2.2-21", "3.3.2-10", "3.3.4-8", "4.5.0-2", "6.0.0-3",
    },
    "3.1.1": {"2.3.1-2", "2.3.1-3", "3.1.2-23", "3.1.3-7", "4.5.0-2", "6.0.0-3", "7.1.2-1"},
}  # fmt: skip
MARKS = {"mqtt5": "5.0", "mqtt311": "3.1.1"}

Key = tuple[str, str]  # version, number


@dataclass
class Statement:
    """One entry of the file."""

    id: str
    version: str
    words: str
    tests: list[str] = field(default_factory=list)
    reason: str = ""

    @property
    def key(self) -> Key:
        return self.version, self.id.removeprefix("MQTT-")


def required() -> set[Key]:
    """The statements that the file has to have."""
    return {
        (version, f"{section}-{number}")
        for version, sections in SECTIONS.items()
        for section, count in sections.items()
        for number in range(1, count + 1)
        if f"{section}-{number}" not in ONLY_CLIENTS[version]
    } - NOT_A_STATEMENT


def read() -> list[Statement]:
    """The entries of `statements.toml`."""
    return [Statement(**entry) for entry in tomllib.loads(FILE.read_text())["statement"]]


def marked() -> dict[Key, set[str]]:
    """The tests of each statement, as pytest collects them: `file::test`, without parameters."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "tests.spec.collecting", str(FILE.parent)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found: dict[Key, set[str]] = defaultdict(set)
    for line in answer.stdout.splitlines():
        match = re.fullmatch(r"statement (\S+) (\S+) (\S+)", line)
        if match:
            found[MARKS[match[1]], match[2]].add(match[3])
    return found


def main() -> None:
    """Write the tests of each statement into the file."""
    tests = marked()
    lines = [line for line in FILE.read_text().splitlines() if line.startswith("#")]
    for statement in read():
        lines += ["", "[[statement]]", f'id = "{statement.id}"', f'version = "{statement.version}"']
        lines.append(f'words = "{statement.words}"')
        names = sorted(tests.get(statement.key, ()))
        if names:
            lines += ["tests = [", *(f'    "{name}",' for name in names), "]"]
        if statement.reason or not names:
            lines.append(f'reason = "{statement.reason}"')
    FILE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
