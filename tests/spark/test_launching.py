"""A JVM of our own: for the plain case, with the options of Spark's own launcher, and never an error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from brookmq.spark import launching
from brookmq.spark.java import VECTOR_REQUEST, java_home, look_at
from brookmq.spark.jvm_cache import Installation, JvmCache
from brookmq.spark.launching import LaunchError, launch, launcher_options, plain_installation

LOCAL = {"spark.master": "local[2,2]"}


@pytest.fixture
def environment() -> dict[str, str]:
    home = java_home({"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "")})
    return {"JAVA_HOME": str(home), "PATH": os.environ["PATH"]}


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]", "local[*,4]"])
def test_local_masters_are_ours(environment: dict[str, str], master: str) -> None:
    assert plain_installation({"spark.master": master}, environment | {"SPARK_LOCAL_IP": "127.0.0.1"}) is not None


@pytest.mark.parametrize(
    ("settings", "variables"),
    [
        ({"spark.master": "spark://127.0.0.1:7077"}, {}),
        ({"spark.master": "local-cluster[2,1,1024]"}, {}),
        ({}, {}),
        ({**LOCAL, "spark.driver.extraJavaOptions": "-Da=b"}, {}),
        ({**LOCAL, "spark.driver.extraClassPath": "/a"}, {}),
        (LOCAL, {"SPARK_CONF_DIR": "/a"}),
        (LOCAL, {"SPARK_HOME": "/a"}),
        (LOCAL, {"SPARK_DRIVER_MEMORY": "2g"}),
        (LOCAL, {"PYSPARK_SUBMIT_ARGS": "--jars a.jar pyspark-shell"}),
        (LOCAL, {"PYSPARK_GATEWAY_PORT": "1"}),
        (LOCAL, {"HADOOP_CONF_DIR": "/a"}),
        (LOCAL, {"JAVA_HOME": "/nowhere"}),
    ],
)  # fmt: skip
def test_what_is_special_is_left_to_spark(
    environment: dict[str, str], settings: dict[str, str], variables: dict[str, str]
) -> None:
    assert plain_installation(settings, environment | variables) is None


def test_what_spark_leaves_in_the_environment_of_its_programs_is_nothing_special(environment: dict[str, str]) -> None:
    left = {"SPARK_AUTH_SOCKET_TIMEOUT": "15", "SPARK_BUFFER_SIZE": "65536", "SPARK_LOCAL_DIRS": "/tmp"}
    assert plain_installation(LOCAL, environment | left) is not None


def test_an_old_java_is_left_to_spark(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    (tmp_path / "release").write_text('JAVA_VERSION="11.0.2"')
    assert plain_installation(LOCAL, {"JAVA_HOME": str(tmp_path)}) is None


def fake_installation(home: Path, script: str, modules: str = "java.base") -> Installation:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(f"#!/bin/sh\n{script}\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="25.0.2"\nMODULES="{modules}"')
    java = look_at(home)
    assert java is not None
    jars = home / "pyspark" / "jars"
    jars.mkdir(parents=True)
    for name in ("b.jar", "a.jar", "spark-launcher_2.13-4.3.0.jar"):
        (jars / name).touch()
    return Installation(java, home / "pyspark", "4.3.0")


ANSWER = (
    r"printf 'Hello\n\0\n'; [ $SPARK_SCALA_VERSION = 2.13 ] && printf java'\0-cp\0%s\0-Xmx1g\0%s\0%s\0%s\0%s\0'"
    r" $SPARK_HOME/conf:$SPARK_HOME/jars/b.jar:$SPARK_HOME'/jars/*' --add-modules=jdk.incubator.vector"
    r" '-Da=b c' org.apache.spark.deploy.SparkSubmit pyspark-shell"
)


@pytest.mark.parametrize(("modules", "kept"), [("java.base", []), ("java.base jdk.incubator.vector", [VECTOR_REQUEST])])
def test_options_are_those_of_the_launcher(tmp_path: Path, modules: str, kept: list[str]) -> None:
    jars = [str(tmp_path / "pyspark" / "jars" / name) for name in ("b.jar", "a.jar", "spark-launcher_2.13-4.3.0.jar")]
    found = launcher_options(fake_installation(tmp_path, ANSWER, modules))
    assert found == ["-cp", ":".join(jars), *kept, "-Da=b c"]


@pytest.mark.parametrize("script", ["exit 1", "echo nothing", "printf '\\0\\n'"])
def test_a_launcher_that_says_something_else(tmp_path: Path, script: str) -> None:
    with pytest.raises(LaunchError, match="Spark's launcher"):
        launcher_options(fake_installation(tmp_path, script))


def test_a_java_that_ends_at_once(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="Java has ended with code 3"):
        launch(fake_installation(tmp_path, "exit 3"), [], LOCAL)


def test_a_java_that_does_not_listen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "ANSWER_WAIT_S", 0.2)
    with pytest.raises(LaunchError, match="does not listen after"):
        launch(fake_installation(tmp_path, "exec cat >/dev/null"), [], LOCAL)


PROGRAM = """
import json, logging, os, sys
logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(name)s %(message)s")
from brookmq.spark import session
spark = session("local[1]", **json.loads(sys.argv[1]))
machine = spark.sparkContext._jvm
options = list(machine.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
def worker(batches):
    import pyarrow as pa, pyspark
    yield pa.RecordBatch.from_pydict({"file": [pyspark.__file__]})
file = spark.range(1).mapInArrow(worker, "file string").first()[0]
print(json.dumps({"options": options, "file": file, "app": spark.conf.get("spark.app.name")}))
"""


def plain_environment() -> dict[str, str]:
    """Without what a Spark of this process, for other tests, has set."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}


def run_program(tmp_path: Path, settings: dict[str, str], **variables: str) -> tuple[dict[str, object], str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(settings)],
        env={**plain_environment(), "XDG_CACHE_HOME": str(tmp_path), "BROOKMQ_JVM_CACHE": "use", **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return told, done.stderr


@pytest.mark.long
def test_a_damaged_cache_is_no_error(tmp_path: Path) -> None:
    """The Java looks at it, refuses it, and starts as if there were none."""
    installation = plain_installation(LOCAL, plain_environment())
    assert installation is not None
    cache = JvmCache.of(installation, tmp_path / "brookmq" / "jvm")
    making = cache.folder.with_name("making")
    making.mkdir(parents=True)
    (making / "classes").write_bytes(os.urandom(1 << 20))
    cache.save(making, launcher_options(installation))
    told, said = run_program(tmp_path, {"spark__app__name": "mine", "spark__driver__memory": "700m"})
    options, file = told["options"], told["file"]
    assert isinstance(options, list)
    assert isinstance(file, str)
    assert any(str(cache.classes) in one for one in options)
    assert f"Java does not take the cache {cache.folder}" in said
    assert not cache.folder.exists()
    assert "-Xmx700m" in options
    assert told["app"] == "mine"
    assert ".zip" not in file, "workers import what is installed"
