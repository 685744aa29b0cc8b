"""The fuzzer finds what it is there to find: bugs planted where the corpus does not reach, within two minutes."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from fuzz.replay import CORPUS

SECONDS_MAX = 120
FOUND = 77  # libFuzzer's exit code for a target that raised
PLANTS = {"rare_properties": "a rare combination", "miscounted_subscription": "subscriptions.count"}

pytestmark = pytest.mark.skipif(find_spec("atheris") is None, reason="atheris has no wheel for this platform")


def fuzz(plant: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the fuzzer on a broken broker, from the corpus that is kept; what it finds goes to ``folder``."""
    command = [sys.executable, "-m", "fuzz.fuzz_channel", f"-artifact_prefix={folder}/", *options]
    environment = {**os.environ, "FUZZ_PLANT": f"tests.fuzz.plants:{plant}"}
    return subprocess.run(
        [*command, str(folder), str(CORPUS)],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=3 * SECONDS_MAX,
    )


def find(plant: str, folder: Path) -> None:
    corpus_alone = fuzz(plant, folder, "-runs=0")
    assert corpus_alone.returncode == 0, corpus_alone.stdout[-2000:] + corpus_alone.stderr[-2000:]
    done = fuzz(plant, folder, f"-max_total_time={SECONDS_MAX}")
    assert PLANTS[plant] in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.returncode == FOUND


def test_a_planted_bug_is_found(tmp_path: Path) -> None:
    """The one that takes a few seconds."""
    find("rare_properties", tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("plant", PLANTS)
def test_planted_bugs_are_found_within_two_minutes(plant: str, tmp_path: Path) -> None:
    find(plant, tmp_path)
