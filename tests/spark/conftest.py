"""One Spark session for all tests: it takes seconds and much memory to start, and a process can have only one.

So tests that use it go to the same process where several run the suite (``--dist loadgroup``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.hookimpl(tryfirst=True)  # xdist looks at the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from brookmq.spark import session

    folder = tmp_path_factory.mktemp("spark")
    found = session(
        "local[2,2]",
        spark__sql__shuffle__partitions=2,
        spark__sql__warehouse__dir=folder / "warehouse",
        spark__local__dir=folder / "local",
    )
    yield found
    found.stop()
