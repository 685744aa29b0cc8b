"""A full disk: publishers are told, nothing that was acknowledged is lost, and it goes on when there is room."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SECONDS_MAX = 240


def test_the_disk_is_full_for_a_while(tmp_path: Path) -> None:
    """On a disk of its own, in a mount namespace that ends with the process."""
    disk, logs = tmp_path / "disk", tmp_path / "logs"
    disk.mkdir()
    program = f"exec {sys.executable} -m tests.faults.durability.small_disk {disk} {logs}"
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    command = [*unshare, "sh", "-c", f"mount -t tmpfs -o size=96m tmpfs {disk} && {program}"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    print(answer.stdout, answer.stderr)
    assert answer.returncode == 0
