"""The driver's JVM for local masters, started by ourselves: the first rows come in half the time.

Spark's own way is a shell script that starts a Java to find out the command for another Java, whose Python workers then
read pyspark from a zip file without compiled code. Here the command comes from the same launcher of Spark's, but is
kept; Java gets a cache of its classes (`jvm_cache`); and Spark is not told a home, so that its workers import the
pyspark that is installed.

All of that is for the plain case: Spark from the wheel, on this machine, with no files and variables that its scripts
would read. Where anything is special, and where anything fails, Spark starts its own way, as if this were not here.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from brookmq.spark.java import VECTOR_REQUEST, VERSION_MIN, look_at
from brookmq.spark.jvm_cache import Installation, JvmCache, mode

log = logging.getLogger("brookmq.spark")

LAUNCHER: Final = "org.apache.spark.launcher.Main"
SUBMIT: Final = "org.apache.spark.deploy.SparkSubmit"
SHELL: Final = "pyspark-shell"
MEMORY: Final = "spark.driver.memory"
MEMORY_DEFAULT: Final = "1g"
ANSWER_WAIT_S: Final = 60.0  # for Spark's launcher, and for the JVM to say where it listens
LOOK_S: Final = 0.02
WARM_AFTER_S: Final = 30.0  # programs that don't last are not disturbed

# What Spark's scripts and launcher make of settings and variables is theirs to say.
_SPECIAL_SETTINGS: Final = re.compile(
    r"spark\.(driver\.(extra(ClassPath|JavaOptions|LibraryPath)|defaultJavaOptions)|remote|api\.mode|submit\..*)"
)
_SPECIAL_VARIABLES: Final = re.compile(
    r"SPARK_(?!LOCAL_IP$|LOCAL_DIRS$|LOCAL_HOSTNAME$|PUBLIC_DNS$|USER$|"
    r"AUTH_SOCKET_TIMEOUT$|BUFFER_SIZE$).*|"  # which Spark itself leaves for programs that it starts
    r"PYSPARK_(SUBMIT_ARGS|GATEWAY_.*)|"
    r"(HADOOP|YARN)_CONF_DIR"
)
_LOCAL: Final = re.compile(r"local(\[[^\]]*\])?")


class LaunchError(Exception):
    """Ours did not start; Spark's own way may."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A JVM that listens. It ends when its standard input does."""

    process: subprocess.Popen[bytes]
    gateway: Any  # of py4j


def prepare_driver(settings: Mapping[str, str]) -> None:
    """Starts the JVM of this process, where there is none and it is ours to start."""
    from pyspark.core.context import SparkContext

    if SparkContext._gateway is not None:  # noqa: SLF001 - nothing else tells whether there is a JVM
        return
    installation = plain_installation(settings, os.environ)
    if installation is None:
        return
    cache = JvmCache.of(installation) if mode() != "off" else None
    options = None if cache is None else cache.load()
    try:
        launched = launch(installation, options or launcher_options(installation), settings)
    except LaunchError as error:
        log.warning("Spark is started by its own scripts: %s", error)
        if cache is not None and options is not None:
            cache.drop()
        return
    SparkContext._ensure_initialized(gateway=launched.gateway)  # noqa: SLF001 - as the constructor would
    if cache is not None and options is not None and not _shares_classes(launched.gateway):
        log.warning("Java does not take the cache %s, and it is dropped", cache.folder)
        cache.drop()
        options = None
    if options is None and mode() == "on":
        timer = threading.Timer(WARM_AFTER_S, _make_cache_beside)
        timer.daemon = True
        timer.start()


def _shares_classes(gateway: Any) -> bool:
    """A Java that finds something wrong with a cache starts without any."""
    return "sharing" in str(gateway.jvm.java.lang.System.getProperty("java.vm.info"))


def _make_cache_beside() -> None:
    """For the next start. The standard input is a pipe that ends with this process, however it ends."""
    nothing = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "brookmq.spark.warming", "--beside"],
            stdin=subprocess.PIPE,
            stdout=nothing,
            stderr=nothing,
            process_group=0,
        )
    except OSError as error:
        log.info("no cache is made for the next start of Spark: %s", error)
        return
    log.info("a cache for the next start of Spark was made" if process.wait() == 0 else "no cache was made")


def plain_installation(settings: Mapping[str, str], environment: Mapping[str, str]) -> Installation | None:
    """The Java and the Spark to start; None where the start is better left to Spark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    spark = Path(spec.origin).parent
    special = [name for name in settings if _SPECIAL_SETTINGS.fullmatch(name)]
    special += [name for name in environment if _SPECIAL_VARIABLES.fullmatch(name)]
    if (spark / "conf").exists():
        special.append(str(spark / "conf"))
    java = look_at(Path(environment.get("JAVA_HOME", "")))
    if not _LOCAL.fullmatch(settings.get("spark.master", "")):
        special.append("spark.master")
    if special or java is None or java.version < VERSION_MIN:
        log.debug("Spark's own scripts start it: %s", ", ".join(special) or "the Java is not known")
        return None
    from pyspark.version import __version__

    return Installation(java, spark, __version__)


def launcher_options(installation: Installation) -> list[str]:
    """The options for Java that Spark's own launcher gives to a driver, the class path among them."""
    jar = next((installation.spark / "jars").glob("spark-launcher_*.jar"), None)
    if jar is None:
        raise LaunchError(f"{installation.spark} has no launcher of Spark's")
    command = [str(installation.java.home / "bin" / "java"), "-Xmx128m", "-cp", str(jar), LAUNCHER, SUBMIT, SHELL]
    scala = jar.name.removeprefix("spark-launcher_").partition("-")[0]
    environment = {**os.environ, "SPARK_HOME": str(installation.spark), "SPARK_SCALA_VERSION": scala}
    nothing = subprocess.DEVNULL
    try:
        done = subprocess.run(  # noqa: S603 - a Java that was looked at
            command, env=environment, stdin=nothing, capture_output=True, check=False, timeout=ANSWER_WAIT_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise LaunchError(f"Spark's launcher does not answer: {error}") from None
    # After a line of its own: the words of the command, each with a zero byte behind it.
    words = done.stdout.partition(b"\0\n")[2].decode().split("\0")
    if done.returncode != 0 or "-cp" not in words or SUBMIT not in words:
        said = (done.stderr or done.stdout)[:500].decode(errors="replace").strip()
        raise LaunchError(f"Spark's launcher answers: {said} ({done.returncode})")
    at = words.index("-cp")
    missing = [] if installation.java.has_vector_module else [VECTOR_REQUEST]
    options = [one for one in words[at + 2 : words.index(SUBMIT)] if one not in missing and one[:4] != "-Xmx"]
    return ["-cp", _expanded(words[at + 1]), *options]


def _expanded(class_path: str) -> str:
    """Each jar by its name, once, in a fixed order: a cache is good for one order only, and folders have none."""
    jars: list[str] = []
    for entry in class_path.split(os.pathsep):
        path = Path(entry)
        jars += map(str, sorted(path.parent.glob("*.jar"))) if path.name == "*" else [entry] * path.exists()
    return os.pathsep.join(dict.fromkeys(jars))


def launch(
    installation: Installation,
    options: Sequence[str],
    settings: Mapping[str, str],
    *,
    group: int | None = 0,
    output: int | None = None,
) -> Launched:
    """Starts a JVM and connects to it. In a group of its own: an interrupt from the keyboard is for the program, which
    ends its queries first."""
    with tempfile.TemporaryDirectory(prefix="brookmq-spark-") as folder:
        answer = Path(folder) / "answer"
        environment = {
            **os.environ,
            "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer),
        }
        command = [str(installation.java.home / "bin" / "java"), f"-Xmx{settings.get(MEMORY, MEMORY_DEFAULT)}"]
        command += [*options, SUBMIT]
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        try:
            process = subprocess.Popen(  # noqa: S603 - a Java that was looked at
                [*command, SHELL],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                process_group=group,
            )
        except OSError as error:
            raise LaunchError(f"{command[0]} does not start: {error}") from None
        try:
            port, secret = _wait_for(answer, process)
        except LaunchError:
            end(process)
            raise
    return Launched(process, _connect(process, port, secret))


def end(process: subprocess.Popen[bytes], wait_s: float = 0.0) -> int:
    """The code with which a JVM ends; one that does not end in time is killed."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        return process.wait(wait_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        return process.wait()


def _wait_for(answer: Path, process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Port and secret; the file has its name when all is in it."""
    deadline = time.monotonic() + ANSWER_WAIT_S
    while not answer.exists():
        if process.poll() is not None:
            raise LaunchError(f"Java has ended with code {process.returncode}")
        if time.monotonic() >= deadline:
            raise LaunchError(f"Java does not listen after {ANSWER_WAIT_S:g} s")
        time.sleep(LOOK_S)
    content = answer.read_bytes()
    size = int.from_bytes(content[4:8])
    return int.from_bytes(content[:4]), content[8 : 8 + size].decode()


def _connect(process: subprocess.Popen[bytes], port: int, secret: str) -> Any:
    from pyspark.java_gateway import launch_gateway

    told = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(told)  # the way in which Spark tells its own scripts of a JVM that is there
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in told:
            del os.environ[name]
    gateway.proc = process  # lives, and keeps the JVM's input open, as long as this process
    return gateway
