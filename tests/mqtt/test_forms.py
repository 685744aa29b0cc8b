"""The compiled codec and the plain one say the same to the same bytes, errors word for word."""

from __future__ import annotations

import os
import subprocess
import sys

from brookmq import _pure

COUNT = 5_000
SEED = 20_240_229


def transcript(pure: bool) -> list[str]:
    environment = {**os.environ, "BROOKMQ_PURE": "1" if pure else "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tests.mqtt.transcript", str(SEED), str(COUNT)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=120)
    return done.stdout.splitlines()


def test_both_forms_agree() -> None:
    plain, installed = transcript(pure=True), transcript(pure=False)
    assert plain[0] == "plain"
    if not _pure.asked_for():
        assert installed[0] == ("compiled" if _pure.is_compiled("brookmq.mqtt.decoding") else "plain")
    assert len(plain) > 2 * COUNT
    for ours, theirs in zip(plain[1:], installed[1:], strict=True):
        assert ours == theirs
