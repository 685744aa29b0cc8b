"""Without any Java on the machine everything works on the one that comes with the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from brookmq.spark.java import packaged_java
from tests.spark.journal_node import JournalNode

MESSAGES = 500
TIME_LIMIT_S = 300

PROGRAM = """
import json, sys
from brookmq.spark import session

url, folder = sys.argv[1:]
spark = session("local[2]")
batch = spark.read.format("brookmq").option("servers", url).load().select("partition", "offset").collect()
stream = []
frame = spark.readStream.format("brookmq").options(servers=url, startingPosition="earliest").load()
told = lambda rows, number: stream.extend(rows.select("partition", "offset").collect())
writer = frame.writeStream.foreachBatch(told)
writer.option("checkpointLocation", folder).trigger(availableNow=True).start().awaitTermination()
print(json.dumps({"home": spark._jvm.java.lang.System.getProperty("java.home"), "batch": batch, "stream": stream}))
"""


def without_java(folder: Path) -> dict[str, str]:
    """An environment in which all programs of the machine are there but Java."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        if not Path(place).is_dir():
            continue
        for program in Path(place).iterdir():
            if not program.name.startswith("java") and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    unset = ("JAVA_HOME", "PATH", "XDG_CACHE_HOME")
    return {name: value for name, value in os.environ.items() if name not in unset} | {"PATH": str(folder)}


@pytest.mark.long  # the demo runs on it in every run
def test_batch_and_stream_on_the_packaged_java(tmp_path: Path) -> None:
    environment = without_java(tmp_path / "programs") | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    journal = JournalNode(tmp_path / "node", shards=2)
    try:
        journal.publish_all((f"a/{number}", b"x") for number in range(MESSAGES))
        expected = sorted([shard, offset] for shard, end in journal.ends().items() for offset in range(end))
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, journal.url, str(tmp_path / "checkpoint")],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
    finally:
        journal.stop()
    assert done.returncode == 0, done.stderr[-5000:]
    told = json.loads(done.stdout.splitlines()[-1])
    packaged = packaged_java()
    assert packaged is not None
    assert Path(told["home"]) == packaged.home
    assert len(expected) == MESSAGES
    assert sorted(told["batch"]) == expected
    assert sorted(told["stream"]) == expected
