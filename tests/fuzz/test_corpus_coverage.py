"""The corpus that is kept: it ends without a finding in both forms, and it reaches what it is there to reach."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.program import OPERATIONS_MAX, Kind, Operation, build, framed, parse, unframed
from fuzz.replay import CORPUS

import brookmq

PERCENT_MIN = 90
CORPUS_BYTES_MAX = 2_000_000
BROKER_PARTS = {  # modules with one job between them: of what waits for a store the corpus reaches little
    "channel": ("channel", "channel_state", "run_taking", "answering"),
    "connect": ("connecting", "authenticating", "admitting", "connack"),
    "publish": ("publishing",),
    "request": ("requests",),
}


def run(*arguments: str, pure: bool, folder: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own: which form is loaded is decided once, and coverage has to see the imports."""
    environment = {**os.environ, "BROOKMQ_PURE": "1" if pure else "0", "COVERAGE_FILE": str(folder / "coverage")}
    return subprocess.run(
        [sys.executable, "-m", *arguments], env=environment, check=False, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    """Lines of each file of the plain form, and how many of them the corpus runs."""
    folder = tmp_path_factory.mktemp("coverage")
    package = str(Path(brookmq.__file__).parent)
    settings = folder / "settings"
    settings.write_text(f"[run]\nsource =\n    {package}/mqtt\n    {package}/broker\n")
    done = run("coverage", "run", f"--rcfile={settings}", "-m", "fuzz.replay", pure=True, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "plain Python" in done.stdout
    report = folder / "report.json"
    done = run("coverage", "json", f"--rcfile={settings}", "-o", str(report), pure=True, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    files = json.loads(report.read_text())["files"]
    return {"/".join(Path(name).parts[-2:]): content["summary"] for name, content in files.items()}


@pytest.mark.long
def test_the_corpus_runs_the_lines_of_mqtt(measured: dict[str, dict[str, int]]) -> None:
    lines = [summary for name, summary in measured.items() if name.startswith("mqtt/")]
    assert len(lines) > 10
    reached = 100 * sum(each["covered_lines"] for each in lines) / sum(each["num_statements"] for each in lines)
    assert reached >= PERCENT_MIN


@pytest.mark.long
@pytest.mark.parametrize("part", BROKER_PARTS)
def test_the_corpus_runs_the_lines_of_the_channel(measured: dict[str, dict[str, int]], part: str) -> None:
    lines = [measured[f"broker/{name}.py"] for name in BROKER_PARTS[part]]
    reached = 100 * sum(each["covered_lines"] for each in lines) / sum(each["num_statements"] for each in lines)
    assert reached >= PERCENT_MIN


def test_the_corpus_ends_without_a_finding_in_the_form_that_is_installed(tmp_path: Path) -> None:
    done = run("fuzz.replay", pure=False, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in CORPUS.iterdir()) < CORPUS_BYTES_MAX


def test_a_finding_is_shown_with_its_input(tmp_path: Path) -> None:
    """What the replay of a crash prints is what somebody has to go on with."""
    script = "import fuzz.world, fuzz.replay, sys\n"
    script += "def fail(data): raise KeyError('broken')\n"
    script += "fuzz.replay.run = fail\nfuzz.replay.main(sys.argv[1:])\n"
    crash = tmp_path / "crash"
    crash.write_bytes(build(b"\1\2\3", [Operation(Kind.FRAME, 1, b"\xc0")]))
    done = subprocess.run([sys.executable, "-c", script, str(crash)], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "configuration 010203\nFRAME at 1: c0" in done.stdout
    assert "KeyError: 'broken'" in done.stderr


def test_every_sequence_of_bytes_is_a_program() -> None:
    for data in (b"", b"\0", bytes(5), bytes(range(256)), b"\xff" * 1000):
        program = parse(data)
        assert len(program.configuration) == 3
        assert len(program.operations) <= OPERATIONS_MAX
        assert parse(build(*program)) == program


def test_frames() -> None:
    for body in (b"", b"x", bytes(127), bytes(128), bytes(20_000)):
        packet = framed(b"\x30" + body)
        assert unframed(packet) == b"\x30" + body
    assert framed(b"") == b""
    for broken in (b"", b"\x30", b"\x30\x80", b"\x30\x80\x00", b"\x30\x05abc", b"\x30\x01abc"):
        assert unframed(broken) is None
