"""A real Spark cluster: executors read the journal and write the tables, and need nothing but the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.journal_node import JournalNode
from tests.spark.pipeline.pipeline_process import PipelineProcess, ask, await_, delta_rows
from tests.spark.standalone import QUICK, cluster_environment, standalone_cluster

MESSAGES = 2000

# Each row comes with the folder of the executor that read it.
PROGRAM = """
import json, os, sys
from brookmq.spark import session

address, url, folder, quick = sys.argv[1:]
spark = session(
    address, spark__executor__memory="512m", spark__executor__extraJavaOptions=quick,
    spark__driver__extraJavaOptions=quick, spark__sql__shuffle__partitions=2,
)
SCHEMA = "partition int, offset bigint, executor string"

def with_executor(batches):
    import pyarrow as pa
    for batch in batches:
        executor = pa.array([os.environ["SPARK_EXECUTOR_DIRS"]] * batch.num_rows)
        yield pa.RecordBatch.from_arrays([*batch.columns, executor], names=["partition", "offset", "executor"])

def told(frame):
    rows = frame.select("partition", "offset").mapInArrow(with_executor, SCHEMA).collect()
    return [[row.partition, row.offset, row.executor] for row in rows]

batch = told(spark.read.format("brookmq").option("servers", url).load())
stream = []
options = {"servers": url, "startingPosition": "earliest", "maxRowsPerBatch": 1500}
frame = spark.readStream.format("brookmq").options(**options).load()
writer = frame.writeStream.foreachBatch(lambda rows, number: stream.append(told(rows)))
writer.option("checkpointLocation", folder).trigger(availableNow=True).start().awaitTermination()
print(json.dumps({"master": spark.sparkContext.master, "batch": batch, "stream": stream}))
spark.stop()
"""


def test_a_cluster_reads_the_journal(tmp_path: Path) -> None:
    journal = JournalNode(tmp_path / "node", shards=2)
    try:
        journal.publish_all((f"a/{number}", b"x") for number in range(MESSAGES))
        expected = sorted([shard, offset] for shard, end in journal.ends().items() for offset in range(end))
        assert len(expected) == MESSAGES
        with standalone_cluster(tmp_path) as address:
            environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
            environment["SPARK_LOCAL_IP"] = cluster_environment()["SPARK_LOCAL_IP"]
            done = subprocess.run(
                [sys.executable, "-c", PROGRAM, address, journal.url, str(tmp_path / "checkpoint"), QUICK],
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.returncode == 0, done.stderr[-5000:]
        told = json.loads(done.stdout.splitlines()[-1])
    finally:
        journal.stop()
    assert told["master"] == address
    assert sorted(row[:2] for row in told["batch"]) == expected
    assert [len(rows) for rows in told["stream"]] == [1500, 500]
    assert sorted(row[:2] for rows in told["stream"] for row in rows) == expected
    assert len({executor for *_, executor in told["batch"]}) == 2


@pytest.mark.long
def test_a_cluster_runs_the_pipeline(tmp_path: Path) -> None:
    journal = JournalNode(tmp_path / "node", shards=2)
    sql = 'SELECT CAST(payload.v AS BIGINT) AS v, topic FROM "s/#" WHERE payload.v >= 10'
    rule = {"sql": sql, "actions": [{"type": "delta", "path": str(tmp_path / "rule")}]}
    bronze = {"kind": "bronze", "path": str(tmp_path / "bronze"), "filter": ["#"]}
    try:
        ask(journal.url, "PUT", "/rules/large", rule)
        ask(journal.url, "PUT", "/tables/bronze", bronze)
        journal.publish_all((f"s/{value % 7}", b'{"v": %d}' % value) for value in range(1000))
        with standalone_cluster(tmp_path) as address:
            pipeline = PipelineProcess(journal.url, tmp_path / "pipeline", "--master", address)
            try:
                await_(lambda: len(delta_rows(tmp_path / "rule")) == 990, pipeline.told)
                await_(lambda: len(delta_rows(tmp_path / "bronze")) == 1000, pipeline.told)
                journal.publish_all([("s/1", b'{"v": 1000}')])
                await_(lambda: len(delta_rows(tmp_path / "rule")) == 991, pipeline.told)
            finally:
                code = pipeline.stop()
            assert code == 0, pipeline.told()
            written = {path.parts[-3] for path in tmp_path.glob("work-*/app-*/*") if path.is_dir()}
            assert len(written) == 2, "executors of both workers"
    finally:
        journal.stop()
    assert sorted(row["v"] for row in delta_rows(tmp_path / "rule")) == list(range(10, 1001))
