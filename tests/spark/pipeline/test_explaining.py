"""What Spark says, in one line: texts as it really writes them."""

from __future__ import annotations

import pytest

from brookmq.spark.pipeline.explaining import CHARACTERS_MAX, explained

SOURCE = """[STREAM_FAILED] Query [id = 3c, runId = a1] terminated with exception: [PYTHON_DATA_SOURCE_ERROR] \
Failed when Python data source instance latestOffset: Traceback (most recent call last):
  File "/x/stream_reader.py", line 90, in latestOffset
    facts = self._look()
ConnectionError: brookmq: no node answers (option servers): http://127.0.0.1:1 (refused)
 SQLSTATE: 38000 SQLSTATE: XXKST"""
BATCH = """[STREAM_FAILED] Query [id = 3c, runId = a1] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] \
An error occurred in the user provided function in foreach batch sink. Reason: An exception was raised by the Python \
Proxy. Return Message: Traceback (most recent call last):
  File "/x/query.py", line 9, in _write
py4j.protocol.Py4JJavaError: An error occurred while calling o12.collect
brookmq.base.errors.OperationError: the disk is full
SQLSTATE: 39000"""
PLAIN = "[STREAM_FAILED] Query [id = 3c] terminated with exception: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (SOURCE, "no node answers (option servers): http://127.0.0.1:1 (refused)"),
        (BATCH, "OperationError: the disk is full"),
        (PLAIN, "Division by zero."),
        ("plain words", "plain words"),
        ("", ""),
    ],
)
def test_one_line(text: str, line: str) -> None:
    assert explained(text) == line


def test_it_is_short() -> None:
    assert len(explained(1000 * "x")) == CHARACTERS_MAX
