"""Drivers killed at any moment, with and without their JVM: in the end each row is in each table once."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.actions.killed_driver import ROWS
from tests.spark.actions.reading import delta_rows, iceberg_rows, parquet_rows

FILES = 12
KILLS = 6
FIRST = datetime(2026, 1, 31, 23, 0, tzinfo=UTC)


def make_source(folder: Path) -> None:
    (folder / "source").mkdir()
    for number in range(FILES):
        numbers = range(number * ROWS, (number + 1) * ROWS)
        moments = [FIRST + timedelta(seconds=one) for one in numbers]
        table = pa.table({"number": numbers, "published_at": pa.array(moments, pa.timestamp("us", tz="UTC"))})
        pq.write_table(table, folder / "source" / f"{number:04}.parquet")


def run(folder: Path, lines_max: int | None, delay_s: float, *, with_jvm: bool) -> bool:
    """Whether it came to its end before it was killed, so long behind so many lines."""
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.actions.killed_driver", str(folder)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    with process:
        assert process.stdout is not None
        try:
            for lines, line in enumerate(process.stdout, 1):
                if line == "done\n":
                    return process.wait(120) == 0
                if lines == lines_max:
                    time.sleep(delay_s)  # a moment within the next steps
                    break
            else:
                raise AssertionError((folder / "log").read_text()[-4000:])
            return False
        finally:
            # Without a driver, JVM and tasks end by themselves, a while later.
            below = psutil.Process(process.pid).children(recursive=True) if with_jvm else []
            process.kill()
            for child in below:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()


@pytest.mark.long
def test_each_row_is_in_each_table_once(tmp_path: Path) -> None:
    chance = random.Random(5)
    make_source(tmp_path)
    for kill in range(KILLS):
        if run(tmp_path, chance.randrange(1, 9), chance.uniform(0, 0.4), with_jvm=kill % 2 == 0):
            break
    else:
        assert run(tmp_path, None, 0, with_jvm=False)

    expected = list(range(FILES * ROWS))
    for kind, read in {"delta": delta_rows, "parquet": parquet_rows, "iceberg": iceberg_rows}.items():
        assert sorted(read(tmp_path / kind)["number"].to_pylist()) == expected, kind
        assert not [path for path in (tmp_path / kind).rglob("staging/*/*") if path.is_dir()]
