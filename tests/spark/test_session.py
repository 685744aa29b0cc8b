"""What an import of the package does, and the session that it makes."""

from __future__ import annotations

import os
import subprocess
import sys

from pyspark.sql import SparkSession

import brookmq.spark
from brookmq.spark import session


def test_an_import_prepares_the_environment_and_loads_nothing_of_spark() -> None:
    code = (
        "import os, sys, brookmq.spark; print(os.environ['PYSPARK_PYTHON']); print(os.environ['JAVA_HOME']);"
        "print([name for name in sys.modules if name.split('.')[0] in ('pyspark', 'pyarrow', 'numpy')])"
    )
    unset = {name: value for name, value in os.environ.items() if name not in ("PYSPARK_PYTHON", "JAVA_HOME")}
    done = subprocess.run([sys.executable, "-c", code], env=unset, capture_output=True, text=True, check=True)
    python, java, loaded = done.stdout.splitlines()
    assert python == sys.executable
    assert os.access(f"{java}/bin/java", os.X_OK)
    assert loaded == "[]"
    given = unset | {"PYSPARK_PYTHON": "/some/python", "JAVA_HOME": "/some/java"}
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[:2] == ["/some/python", "/some/java"]


def test_a_session_takes_settings(spark: SparkSession) -> None:
    again = session(spark__sql__shuffle__partitions=2, spark__sql__caseSensitive=False)
    assert again is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.sql.caseSensitive") == "false"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_what_the_package_offers() -> None:
    for name in brookmq.spark.__all__:
        assert callable(getattr(brookmq.spark, name))
