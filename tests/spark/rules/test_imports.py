"""Rules are checked where there is no Spark: on a node that saves them."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from brookmq.spark.rules import Schema, compile_rule
import brookmq.spark.rules.guide
compile_rule('SELECT payload.t AS t FROM "a/+" WHERE payload.t > 1', Schema.checked("c", "csv", {"fields": "t double"}))
heavy = {"pyspark", "pyarrow", "pandas", "numpy", "fastavro", "google.protobuf", "grpc_tools"} & set(sys.modules)
sys.exit(f"imported: {heavy}" if heavy else 0)
"""


def test_no_spark_is_needed_to_compile() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
