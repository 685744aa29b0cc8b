"""Makes the format ``brookmq`` known to every Spark session.

Spark looks for packages that begin with ``pyspark_`` and takes their ``DefaultSource``. If this import fails all that a
user sees is that the format does not exist: so there is nothing here that could.
"""

from brookmq.spark.source import BrookSource as DefaultSource

__all__ = ["DefaultSource"]
