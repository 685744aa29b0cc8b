"""``brookmq ctl`` against a real server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from brookmq.ops.ctl import ctl, output
from brookmq.ops.view import AlarmInfo, StoreInfo
from tests.ops.memory_node import STARTED_AT, MemoryNode

EXIT_REFUSED, EXIT_USAGE, EXIT_NO_ANSWER = 1, 2, 3

Run = Callable[..., Result]


@pytest.fixture
def run(address: str) -> Run:
    """Runs a command against the server, by the environment as a user would."""

    def run_command(*arguments: str, stdin: bytes = b"") -> Result:
        return CliRunner().invoke(ctl, arguments, env={"BROOKMQ_URL": f"http://{address}"}, input=stdin)

    return run_command


def test_status(run: Run, memory_node: MemoryNode) -> None:
    result = run("status")
    assert result.exit_code == 0
    assert "state\tready" in result.stdout
    assert "default\ttcp\t127.0.0.1:1883\t3\t1000" in result.stdout
    memory_node.not_ready = "no listener is open"
    result = run("status")
    assert result.exit_code == EXIT_REFUSED
    assert "state\tnot ready: no listener is open" in result.stdout


def test_status_says_how_the_store_is(run: Run, memory_node: MemoryNode) -> None:
    assert "store\t" not in run("status").stdout
    memory_node.stored = StoreInfo(("nats://127.0.0.1:4222",), own=True, reason="", restarts=0)
    assert "store\town, nats://127.0.0.1:4222\n" in run("status").stdout
    memory_node.stored = StoreInfo(("nats://a:1", "nats://b:2"), own=False, reason="it sleeps", restarts=2)
    line = "store\texternal, nats://a:1, nats://b:2, restarted 2 times, cannot be used: it sleeps\n"
    assert line in run("status").stdout
    memory_node.stored = StoreInfo((), own=True, reason="the store is starting", restarts=0)
    assert "store\town, not started yet, cannot be used: the store is starting\n" in run("status").stdout
    assert json.loads(run("status", "--json").stdout)["node"]["store"]["own"] is True


def test_status_as_json(run: Run) -> None:
    answer = json.loads(run("status", "--json").stdout)
    assert answer["ready"] is True
    assert answer["node"]["role"] == "core"


def test_clients_list_for_a_pipe(run: Run, memory_node: MemoryNode) -> None:
    memory_node.add_client("a", username="alice")
    memory_node.add_client("b", connected=False)
    lines = [line.split("\t") for line in run("clients", "list").stdout.splitlines()]
    assert lines[0] == ["client id", "connected", "address", "user", "mqtt", "filters", "queued", "behind"]
    assert [lines[1][0], *lines[1][2:]] == ["a", "127.0.0.1:50123", "alice", "5.0", "1", "0", "0"]
    assert lines[2] == ["b", "no", "-", "-", "5.0", "1", "0", "0"]
    assert len(run("clients", "list", "--away").stdout.splitlines()) == 2
    assert len(run("clients", "list", "--search", "alice").stdout.splitlines()) == 2


def test_clients_list_says_that_there_are_more(run: Run, memory_node: MemoryNode) -> None:
    for number in range(2500):
        memory_node.add_client(f"{number:04}")
    result = run("clients", "list", "--limit", "2")
    assert [line.split("\t")[0] for line in result.stdout.splitlines()[1:]] == ["0000", "0001"]
    assert "more than these 2" in result.stderr
    result = run("clients", "list", "--all", "--json")
    assert [row["client_id"] for row in json.loads(result.stdout)] == sorted(memory_node.table)
    assert result.stderr == ""


def test_an_empty_list_as_json(run: Run) -> None:
    assert json.loads(run("clients", "list", "--json").stdout) == []


def test_clients_show(run: Run, memory_node: MemoryNode) -> None:
    memory_node.add_client("room/7")
    memory_node.add_subscription("room/7", "a/+", 2)
    shown = run("clients", "show", "room/7").stdout
    assert "sent\t20 messages, 2.0 kB" in shown
    assert "subscriptions\ta/+ (QoS 2)" in shown
    assert json.loads(run("clients", "show", "room/7", "--json").stdout)["subscriptions"][0]["filter"] == "a/+"


def test_clients_kick(run: Run, memory_node: MemoryNode) -> None:
    memory_node.add_client("a")
    assert run("clients", "kick", "a").stdout == "kicked\n"
    result = run("clients", "kick", "a")
    assert result.exit_code == EXIT_REFUSED
    assert result.stderr == "Error: the node says: no client 'a' on this node\n"


def test_subscriptions_and_topics(run: Run, memory_node: MemoryNode) -> None:
    memory_node.add_subscription("a", "x/#", 1)
    memory_node.add_subscription("b", "x/#")
    assert run("subscriptions", "list", "--client-id", "a").stdout.splitlines()[1] == "a\tx/#\t1\tno\tno\t-"
    assert run("topics", "list").stdout.splitlines()[1:] == ["x/#\t2"]


def test_retained(run: Run, memory_node: MemoryNode) -> None:
    memory_node.add_retained("a/b", b"\xff\x00")
    assert run("retained", "list").stdout.splitlines()[1].startswith("a/b\t1\t2\t")
    assert run("retained", "show", "a/b").stdout_bytes == b"\xff\x00"
    assert json.loads(run("retained", "show", "a/b", "--json").stdout)["payload_encoding"] == "base64"
    assert run("retained", "delete", "a/b").stdout == "deleted\n"
    assert run("retained", "delete", "a/b").exit_code == EXIT_REFUSED


def test_publish(run: Run, memory_node: MemoryNode, tmp_path: Path) -> None:
    memory_node.add_subscription("a", "t")
    result = run("publish", "t", "-m", "ü", "-q", "2", "-r", "-P", "a=1", "-P", "a=2=3", "--expiry", "5")
    assert result.stdout == "published to 1 subscription\n"
    request = memory_node.published[0]
    assert (request.payload, request.qos, request.retain) == ("ü".encode(), 2, True)
    assert request.properties.user == (("a", "1"), ("a", "2=3"))
    assert request.properties.message_expiry_s == 5
    file = tmp_path / "payload"
    file.write_bytes(b"\x00\xff")
    assert json.loads(run("publish", "u", "-f", str(file), "--json").stdout) == {"receivers": 0}
    assert run("publish", "u", "-f", "-", stdin=b"\xfe").exit_code == 0
    assert [request.payload for request in memory_node.published[1:]] == [b"\x00\xff", b"\xfe"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["publish", "t"],
        ["publish", "t", "-m", "a", "-f", "-"],
        ["publish", "t", "-m", "a", "-q", "3"],
        ["publish", "t", "-m", "a", "-P", "nothing"],
        ["log-level", "loud"],
        ["clients", "list", "--limit", "0"],
        ["status", "--url", "ftp://here"],
        ["status", "--url", "http://[::1"],
    ],
)
def test_wrong_usage(run: Run, arguments: list[str]) -> None:
    assert run(*arguments).exit_code == EXIT_USAGE


def test_metrics(run: Run, memory_node: MemoryNode) -> None:
    memory_node.counted["messages_sent"] = 7
    assert "messages_sent\t7\n" in run("metrics").stdout
    assert run("metrics", "lag").stdout == "loop_lag_s\t0.001\n"
    assert set(json.loads(run("metrics", "lag", "--json").stdout)) == {"counters", "gauges"}


def test_alarms_and_log_level(run: Run, memory_node: MemoryNode) -> None:
    memory_node.raised = [AlarmInfo("plugin_off", "audit was switched off", STARTED_AT)]
    assert run("alarms").stdout.splitlines()[1].startswith("plugin_off\t")
    assert run("log-level").stdout == "info\n"
    assert run("log-level", "debug").stdout == "debug\n"
    assert memory_node.level == "debug"


def test_no_node_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    result = CliRunner().invoke(ctl, ["status", "--url", f"127.0.0.1:{port}"])
    assert result.exit_code == EXIT_NO_ANSWER
    assert f"no node answers at http://127.0.0.1:{port}" in result.stderr
    assert "brookmq start" in result.stderr


@pytest.mark.parametrize("answer", [b"", b"\x20\x02\x00\x01", b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno"])
def test_somebody_else_there(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def serve() -> None:
            stream, _ = other.accept()
            with stream:
                stream.recv(65536)
                stream.sendall(answer)

        serving = threading.Thread(target=serve)
        serving.start()
        result = CliRunner().invoke(ctl, ["status", "--url", f"http://127.0.0.1:{other.getsockname()[1]}"])
        serving.join()
    assert result.exit_code == EXIT_NO_ANSWER
    assert "not as BrookMQ's HTTP API does" in result.stderr


def test_names_can_not_drive_the_terminal(run: Run, memory_node: MemoryNode) -> None:
    memory_node.add_client("\x1b[31mred\t\u202e")
    listed = run("clients", "list").stdout
    assert "\\x1b[31mred\\t\\u202e\t" in listed
    assert "\x1b" not in listed


def test_a_table_in_a_terminal(run: Run, memory_node: MemoryNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_in_terminal", lambda: True)
    assert run("clients", "list").stdout == "none\n"
    memory_node.add_client("[bold]a[/bold]")
    table = run("clients", "list").stdout
    assert "[bold]a[/bold]" in table
    assert "─" in table
    assert "state" in run("status").stdout


@pytest.mark.parametrize(
    "command", [[], ["status"], ["clients", "list"], ["clients", "kick"], ["publish"], ["retained", "show"]]
)
def test_help_has_examples(command: list[str]) -> None:
    result = CliRunner().invoke(ctl, [*command, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert "brookmq ctl" in result.stdout


def test_clients_forget(run: Run, memory_node: MemoryNode) -> None:
    memory_node.add_client("a")
    memory_node.add_client("b/ü")
    assert run("clients", "forget", "a").stdout == "forgotten\n"
    assert json.loads(run("clients", "forget", "b/ü", "--json").stdout) == {"client_id": "b/ü", "forgotten": True}
    assert memory_node.table == {}
    assert run("clients", "forget", "a").exit_code == EXIT_REFUSED
    said = " ".join(run("clients", "forget", "--help").stdout.split())
    assert "retained messages that it published, as they are their topics' values" in said
    assert "records of the journal until retention removes them" in said
