"""The fuzzer finds what it is there to find: bugs planted where the corpus does not reach, within two minutes."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SECONDS_MAX = 120
HANGS_SECONDS = 900  # longer than all of that on a machine with other work
FOUND = 77  # libFuzzer's exit code for a target that raised
PLANTS = {
    "three_properties": "three at once",
    "rare_properties": "a rare combination",
    "miscounted_subscription": "subscriptions.count",
}

pytestmark = pytest.mark.skipif(find_spec("atheris") is None, reason="atheris has no wheel for this platform")


def run(plant: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, as plain Python and with the bug in it."""
    environment = {**os.environ, "BROOKMQ_PURE": "1", "FUZZ_PLANT": f"tests.fuzz.plants:{plant}"}
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=HANGS_SECONDS,
    )


def find(plant: str, folder: Path, bound: str) -> None:
    """Fuzz a broken broker, beginning with what the corpus has apart from the bug."""
    begun = run(plant, "tests.fuzz.plants", plant, str(folder))
    assert begun.returncode == 0, begun.stderr
    assert len([*folder.iterdir()]) > 100
    done = run(plant, "fuzz.fuzz_channel", bound, f"-artifact_prefix={folder}/", str(folder))
    assert PLANTS[plant] in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.returncode == FOUND


@pytest.mark.long
@pytest.mark.parametrize("plant", PLANTS)
def test_planted_bugs_are_found_within_two_minutes(plant: str, tmp_path: Path) -> None:
    find(plant, tmp_path, f"-max_total_time={SECONDS_MAX}")
