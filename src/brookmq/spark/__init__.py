"""BrookMQ in Spark: the journal as a source, MQTT as a sink.

Importing it is enough for a Spark that finds its way: the Python of its workers is this one (else they take the first
``python3`` on the path, which knows nothing of Arrow), and there is a Java. What is set already stays.

>>> import brookmq.spark
>>> spark = brookmq.spark.session()
>>> spark.read.format("brookmq").option("filter", "sensors/#").load().show()

Nothing of Spark itself is imported before it is used.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from brookmq.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from brookmq.spark.topic_filter import topic_matches

__all__ = ["prepare_environment", "session", "topic_matches"]

LOOPBACK: Final = "127.0.0.1"
# A worker that dies is tried again; `local[*]` alone would fail the query.
MASTER_DEFAULT: Final = "local[*,4]"

_SETTINGS: Final = {
    "spark.app.name": "brookmq",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
}
# Spark's first choice for checkpoints starts some fifteen programs (chmod, readlink) for each batch on a local disk, to
# find out about links and permissions; this one starts four, and renames in the same way.
_LOCAL_SETTINGS: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}


def prepare_environment() -> None:
    """Sets what Spark reads from the environment, where it is unset."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if "JAVA_HOME" not in os.environ and (home := java_home()) is not None:
        os.environ["JAVA_HOME"] = str(home)


def session(master: str | None = None, **options: Any) -> SparkSession:
    """A Spark session with settings that suit; ``options`` are further ones, with ``__`` for a dot.

    >>> session("local[2]", spark__sql__shuffle__partitions=2)

    ``master`` defaults to what the environment says (``MASTER``, ``spark-submit``), else to all cores of this machine.
    """
    from pyspark.conf import SparkConf
    from pyspark.core.context import SparkContext
    from pyspark.sql import SparkSession

    from brookmq.spark.launching import prepare_driver

    if "PYSPARK_GATEWAY_PORT" in os.environ:  # by spark-submit: what it was told is known to the JVM that it started
        SparkContext._ensure_initialized()  # noqa: SLF001 - there is no other way to ask before there is a session
    given = {name.replace("__", "."): _text(value) for name, value in options.items()}
    known = SparkConf()
    chosen = master or known.get("spark.master") or os.environ.get("MASTER") or MASTER_DEFAULT
    defaults = dict(_SETTINGS)
    if chosen.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        defaults |= _LOCAL_SETTINGS
    settings = {name: value for name, value in defaults.items() if not known.contains(name)} | given
    prepare_driver({"spark.master": chosen, **settings})
    builder = SparkSession.builder.master(chosen)
    for name, value in settings.items():
        builder = builder.config(name, value)
    found: SparkSession = builder.getOrCreate()
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def __getattr__(name: str) -> Any:
    if name == "topic_matches":
        from brookmq.spark.topic_filter import topic_matches

        return topic_matches
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


prepare_environment()
