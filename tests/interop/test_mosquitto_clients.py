"""mosquitto_pub, mosquitto_sub and mosquitto_rr, as shell scripts use them."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.interop.broker import InteropBroker
from tests.interop.client import DEADLINE_SECONDS

VERSIONS = {3: "mqttv31", 4: "mqttv311", 5: "mqttv5"}
every_version = pytest.mark.parametrize("version", VERSIONS)
every_transport = pytest.mark.parametrize("transport", ["tcp", "tls"])

Run = Callable[..., str]
Start = Callable[..., "Background"]


class Background:
    """A client that runs while the test goes on."""

    def __init__(self, command: list[str]) -> None:
        # Into a pipe it would write in blocks; stdbuf makes it lines.
        command = ["stdbuf", "-oL", *command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.seen: list[str] = []
        self._deadline = threading.Timer(2 * DEADLINE_SECONDS, self.process.kill)  # ends reads that would last forever
        self._deadline.start()

    def line(self, containing: str = "") -> str:
        """The next line of its output that has this in it; its end is an error."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.seen.append(line)
            if containing in line:
                return line.rstrip("\n")
        raise AssertionError(f"no {containing!r} in {self.seen}")

    def result(self) -> str:
        """Its output when it ends by itself."""
        output, _ = self.process.communicate(timeout=DEADLINE_SECONDS)
        assert self.process.returncode == 0, output
        return output

    def stop(self) -> None:
        self._deadline.cancel()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    if shutil.which("mosquitto_sub") is None:
        pytest.skip("mosquitto-clients is not installed")


@pytest.fixture
def command(broker: InteropBroker) -> Callable[..., list[str]]:
    def make(program: str, version: int, transport: str, *arguments: str) -> list[str]:
        endpoint = broker.endpoints[transport]
        where = ["-h", endpoint.host, "-p", str(endpoint.port), "-V", VERSIONS[version]]
        if endpoint.is_secure:
            where += ["--cafile", str(broker.ca)]
        return [f"mosquitto_{program}", *where, *arguments]

    return make


@pytest.fixture
def run(command: Callable[..., list[str]]) -> Run:
    """Run a client to its end and give its output."""

    def run_one(*arguments: object) -> str:
        done = subprocess.run(
            command(*arguments), capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_one


@pytest.fixture
def start(command: Callable[..., list[str]]) -> Iterator[Start]:
    """Start a client in the background."""
    started: list[Background] = []

    def start_one(*arguments: object) -> Background:
        started.append(Background(command(*arguments)))
        return started[-1]

    yield start_one
    for client in started:
        client.stop()


def subscribed(start: Start, version: int, transport: str, *arguments: str) -> Background:
    """A mosquitto_sub whose SUBACK has come (its debug output says so)."""
    client = start("sub", version, transport, "-d", *arguments)
    client.line("received SUBACK")
    return client


@every_transport
@every_version
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_pub_and_sub(run: Run, start: Start, topic: str, version: int, transport: str, qos: int) -> None:
    subscriber = subscribed(
        start, version, transport, "-t", f"{topic}/#", "-q", str(qos), "-C", "3", "-F", "= %t %q %p"
    )
    for number in range(3):
        run("pub", version, transport, "-t", f"{topic}/{number}", "-q", str(qos), "-m", f"message {number}")
    lines = [line for line in subscriber.result().splitlines() if line.startswith("=")]
    assert lines == [f"= {topic}/{number} {qos} message {number}" for number in range(3)]


@every_version
def test_many_lines_in_one_connection(run: Run, start: Start, topic: str, version: int, broker: InteropBroker) -> None:
    subscriber = subscribed(start, version, "tcp", "-t", topic, "-q", "2", "-C", "500", "-F", "= %p")
    lines = "".join(f"{number}\n" for number in range(500))
    subprocess.run(
        ["mosquitto_pub", "-h", broker.endpoints["tcp"].host, "-p", str(broker.endpoints["tcp"].port),
         "-V", VERSIONS[version], "-t", topic, "-q", "2", "-l"],
        input=lines, text=True, check=True, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    received = [line[2:] for line in subscriber.result().splitlines() if line.startswith("= ")]
    assert received == [str(number) for number in range(500)]


@every_transport
@every_version
def test_retained(run: Run, topic: str, version: int, transport: str) -> None:
    run("pub", version, transport, "-t", topic, "-m", "kept", "-r", "-q", "1")
    assert run("sub", version, transport, "-t", topic, "-C", "1", "-F", "%r %p") == "1 kept\n"
    run("pub", version, transport, "-t", topic, "-n", "-r", "-q", "1")
    run("pub", version, transport, "-t", f"{topic}/end", "-m", "end", "-r", "-q", "1")
    assert run("sub", version, transport, "-t", f"{topic}/#", "-C", "1", "-F", "%r %p") == "1 end\n"
    run("pub", version, transport, "-t", f"{topic}/end", "-n", "-r", "-q", "1")


@every_version
def test_will(start: Start, topic: str, version: int) -> None:
    watcher = subscribed(start, version, "tcp", "-t", topic, "-q", "1", "-C", "1", "-F", "= %p")
    doomed = subscribed(
        start,
        version,
        "tcp",
        "-t",
        f"{topic}/other",
        "--will-topic",
        topic,
        "--will-payload",
        "gone",
        "--will-qos",
        "1",
    )
    doomed.stop()  # kill -9
    assert watcher.result().splitlines()[-2:].count("= gone") == 1


@every_version
def test_persistent_session(run: Run, topic: str, version: int) -> None:
    client_id = uuid.uuid4().hex[:20]
    keep = ["-i", client_id, "-c", "-q", "1", "-t", topic]
    if version == 5:
        keep += ["-x", "300"]
    run("sub", version, "tcp", *keep, "-E")  # subscribes and leaves
    for number in range(10):
        run("pub", version, "tcp", "-t", topic, "-q", "1", "-m", str(number))
    received = run("sub", version, "tcp", *keep, "-C", "10")
    assert received.split() == [str(number) for number in range(10)]


@every_version
def test_shared_subscription(run: Run, start: Start, topic: str, version: int) -> None:
    members = [
        subscribed(start, version, "tcp", "-t", f"$share/group/{topic}", "-t", f"{topic}/end", "-q", "1", "-F", "= %p")
        for _ in range(2)
    ]
    for number in range(10):
        run("pub", version, "tcp", "-t", topic, "-q", "1", "-m", str(number))
    run("pub", version, "tcp", "-t", f"{topic}/end", "-q", "1", "-m", "end")
    received: list[str] = []
    for member in members:
        while (line := member.line("= ")) != "= end":
            received.append(line[2:])
    assert sorted(received) == [str(number) for number in range(10)]


@every_transport
@pytest.mark.parametrize("version", [4, 5])
def test_request_and_response(run: Run, start: Start, topic: str, version: int, transport: str) -> None:
    responder = subscribed(start, 5, transport, "-t", f"{topic}/requests", "-q", "1", "-F", "= %R|%D|%p", "-C", "1")
    requester = start(
        "rr", version, transport, "-t", f"{topic}/requests", "-e", f"{topic}/answers", "-q", "1", "-m", "question",
        "-W", "10", *(["-D", "publish", "correlation-data", "number-7"] if version == 5 else []),
    )  # fmt: skip
    response_topic, correlation, question = responder.line("= ")[2:].split("|")
    assert question == "question"
    answer = ["-t", f"{topic}/answers", "-q", "1", "-m", "answer"]
    if version == 5:
        assert (response_topic, correlation) == (f"{topic}/answers", "number-7")
        answer += ["-D", "publish", "correlation-data", correlation]
    run("pub", 5, transport, *answer)
    assert requester.result() == "answer\n"


def test_user_properties_keep_their_order(run: Run, start: Start, topic: str) -> None:
    subscriber = subscribed(start, 5, "tcp", "-t", topic, "-C", "1", "-F", "= %P")
    pairs = [("b", "1"), ("a", "2"), ("b", "3")]
    properties = [word for name, value in pairs for word in ("-D", "publish", "user-property", name, value)]
    run("pub", 5, "tcp", "-t", topic, "-m", "x", *properties)
    assert subscriber.line("= ") == "= " + " ".join(f"{name}:{value}" for name, value in pairs)


def test_properties_as_json(run: Run, start: Start, topic: str) -> None:
    subscriber = subscribed(start, 5, "tcp", "-t", topic, "-q", "1", "-C", "1", "-F", "%j")
    run(
        "pub", 5, "tcp", "-t", topic, "-q", "1", "-m", "{}", "-D", "publish", "content-type", "application/json",
        "-D", "publish", "message-expiry-interval", "60", "-D", "publish", "payload-format-indicator", "1",
        "-D", "publish", "response-topic", "somewhere",
    )  # fmt: skip
    message = json.loads(subscriber.line('"payload"'))
    properties = message["properties"]
    assert properties["content-type"] == "application/json"
    assert properties["payload-format-indicator"] == 1
    assert properties["response-topic"] == "somewhere"
    assert 58 <= properties["message-expiry-interval"] <= 60


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_large_payload(run: Run, start: Start, topic: str, tmp_path_factory: pytest.TempPathFactory, qos: int) -> None:
    file = tmp_path_factory.mktemp("large") / "payload"
    file.write_bytes(b"0123456789abcdef" * 60_000)
    subscriber = subscribed(start, 5, "tls", "-t", topic, "-q", str(qos), "-C", "1", "-F", "= %l")
    run("pub", 5, "tcp", "-t", topic, "-q", str(qos), "-f", str(file))
    assert subscriber.line("= ") == "= 960000"


@every_version
def test_takeover(run: Run, start: Start, topic: str, version: int) -> None:
    client_id = uuid.uuid4().hex[:20]
    first = subscribed(start, version, "tcp", "-i", client_id, "-t", topic)
    second = subscribed(start, version, "tcp", "-i", client_id, "-t", topic, "-C", "1", "-F", "= %p")
    if version == 5:
        first.line("eceived DISCONNECT (142)")
    first.stop()  # mosquitto_sub would connect again
    run("pub", version, "tcp", "-t", topic, "-m", "to the second")
    assert second.line("= ") == "= to the second"


def test_client_certificate(run: Run, topic: str, broker: InteropBroker) -> None:
    certificate = ["--cert", str(broker.client.cert), "--key", str(broker.client.key)]
    run("pub", 5, "tls", "-t", topic, "-m", "signed", "-r", "-q", "1", *certificate)
    assert run("sub", 5, "tls", "-t", topic, "-C", "1", *certificate) == "signed\n"
    run("pub", 5, "tls", "-t", topic, "-n", "-r", "-q", "1", *certificate)


def test_topic_alias(run: Run, start: Start, topic: str) -> None:
    subscriber = subscribed(start, 5, "tcp", "-t", topic, "-C", "3", "-F", "= %t %p")
    run("pub", 5, "tcp", "-t", topic, "-m", "x", "--repeat", "3", "-D", "publish", "topic-alias", "1")
    assert [line for line in subscriber.result().splitlines() if line.startswith("=")] == [f"= {topic} x"] * 3
