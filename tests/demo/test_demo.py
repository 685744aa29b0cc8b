"""The whole demo as a user runs it: processes, tables, picture, and nothing left behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from deltalake import DeltaTable
from demo.fleet import devices
from matplotlib.image import imread

from tests.spark.test_packaged_java import without_java

ROOT = Path(__file__).parents[2]
WHOLE_S = 900.0
NOTICED_S = 180.0


def demo(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Its temporary folder is within ``folder``, by which its processes are known. It has to find a Java by itself."""
    environment = without_java(folder / "programs")
    return subprocess.Popen(
        [sys.executable, "-m", "demo", "--output", str(folder / "out"), "--master", "local[2,4]", *arguments],
        cwd=ROOT,
        env={**environment, "TMPDIR": str(folder), "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def processes(folder: Path) -> list[str]:
    """What still runs and has the folder in its command."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = " ".join(process.info["cmdline"] or ())
        if str(folder) in command and "demo" in command:
            found.append(command)
    return found


def await_(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + NOTICED_S
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("count", "seconds"), [(300, 4), pytest.param(1000, 25, marks=pytest.mark.long)], ids=["small", "whole"]
)
def test_every_device_is_in_the_result(tmp_path: Path, count: int, seconds: int) -> None:
    running = demo(tmp_path, "--devices", str(count), "--seconds", str(seconds), "--keep")
    output, _ = running.communicate(timeout=WHOLE_S)
    assert running.returncode == 0, output
    picture = tmp_path / "out" / "brookmq-demo.png"
    assert output.splitlines()[-1] == f"the picture: {picture}"
    assert imread(picture).size
    results = json.loads(picture.with_suffix(".json").read_text())
    assert results["problems"] == []
    assert [(one["client_id"], one["kind"]) for one in results["devices"]] == [
        (device.client_id, device.kind) for device in devices(count)
    ]
    assert results["alarms"] > 0

    # What the tables say, read once more.
    (work,) = tmp_path.glob("brookmq-demo-*")
    numbers: dict[str, list[int]] = defaultdict(list)
    for row in DeltaTable(str(work / "tables" / "silver")).to_pyarrow_table(columns=["client_id", "n"]).to_pylist():
        numbers[row["client_id"]].append(row["n"])
    assert set(numbers) == {device.client_id for device in devices(count)}
    for one in results["devices"]:
        assert sorted(numbers[one["client_id"]]) == list(range(1, one["last"] + 1))
    assert sum(map(len, numbers.values())) == results["messages"]
    assert processes(tmp_path) == []


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_interrupted_it_leaves_nothing_behind(tmp_path: Path, how: signal.Signals) -> None:
    running = demo(tmp_path, "--devices", "50")
    await_(lambda: list(tmp_path.glob("brookmq-demo-*/pipeline.log")), running)
    assert processes(tmp_path)
    running.send_signal(how)
    output, _ = running.communicate(timeout=NOTICED_S)
    assert running.returncode == 130, output
    assert "Traceback" not in output
    assert processes(tmp_path) == []
    assert not list(tmp_path.glob("brookmq-demo-*"))
