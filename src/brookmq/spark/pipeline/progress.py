"""What Spark tells of its streams, passed on.

Spark's own listener for Python fetches each of some forty numbers of a report by a call into Java, for every batch of
every query. The report is there as JSON in one piece, so that is taken instead.

Reports come on threads of Spark's, later than what they tell of, and may be left out when there are too many. So they
are for numbers alone: whether a query lives is asked where that is decided.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JavaObject = Any  # a reference into Java

Told = Callable[[str, Mapping[str, Any] | None], None]
"""Gets the id of a query's run and its report; None: it looked, and there was nothing to do."""


class _Receiver:
    """Called from Java."""

    def __init__(self, told: Told) -> None:
        self._told = told

    def onQueryStarted(self, event: JavaObject) -> None:  # noqa: N802 - Spark's names, here and below
        """Whoever starts a query knows it."""

    def onQueryProgress(self, event: JavaObject) -> None:  # noqa: N802
        report = json.loads(event.progress().json())
        self._told(str(report["runId"]), report)

    def onQueryIdle(self, event: JavaObject) -> None:  # noqa: N802
        self._told(str(event.runId().toString()), None)

    def onQueryTerminated(self, event: JavaObject) -> None:  # noqa: N802
        """Asked for by the one who started it."""

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


class ProgressListener(StreamingQueryListener):
    """Passes reports on to ``told``."""

    def __init__(self, told: Told) -> None:
        self._receiver = _Receiver(told)
        self._java: JavaObject | None = None

    @property
    def _jlistener(self) -> JavaObject:
        """What Spark registers."""
        from pyspark import SparkContext

        if self._java is None:
            assert SparkContext._jvm is not None  # noqa: SLF001
            self._java = SparkContext._jvm.PythonStreamingQueryListenerWrapper(self._receiver)  # noqa: SLF001
        return self._java

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Not called: the receiver is."""

    onQueryProgress = onQueryIdle = onQueryTerminated = onQueryStarted  # noqa: N815


def listen(spark: SparkSession, told: Told) -> ProgressListener:
    """Reports of all streams of a session go to ``told``."""
    listener = ProgressListener(told)
    spark.streams.addListener(listener)
    return listener
