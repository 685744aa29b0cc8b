"""The load tool over every transport, against a real node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from brookmq.bench.cli import bench
from tests.edge.certificates import Authority
from tests.harness.node import Node


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def all_transports(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    server = authority.issue("server", "127.0.0.1", ("127.0.0.1",))
    tls = f'tls = {{ cert = "{server.cert}", key = "{server.key}" }}\n'
    config = "".join(
        f'[listeners.{kind}_one]\ntype = "{kind}"\nbind = "127.0.0.1:0"\n{tls if kind in {"tls", "wss"} else ""}\n'
        for kind in ("tcp", "tls", "ws", "wss")
    )
    node = Node(tmp_path_factory.mktemp("node"), config)
    yield node
    node.stop()


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize(
    ("listener", "options"), [("mqtt", ()), ("tls", ("--tls",)), ("ws", ("--ws",)), ("wss", ("--tls", "--ws"))]
)
def test_every_message_arrives(
    all_transports: Node, authority: Authority, listener: str, options: tuple[str, ...], version: str
) -> None:
    address = all_transports.address(listener)
    assert address is not None
    load = ["pairs", "--pairs", "2", "--qos", "1", "--payload", "5000", "--count", "300", "--mqtt-version", version]
    where = ["--port", str(address[1]), "--ca-file", str(authority.ca), *options, "--json"]
    result = CliRunner().invoke(bench, [*load, *where], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert (report["sent"], report["acknowledged"], report["received"], report["lost"]) == (600, 600, 600, 0)


def test_a_certificate_of_another_authority_is_refused(all_transports: Node, tmp_path: Path) -> None:
    address = all_transports.address("tls")
    assert address is not None
    other = Authority(tmp_path)
    arguments = ["pub", "--tls", "--ca-file", str(other.ca), "--port", str(address[1]), "--count", "1", "--quiet"]
    result = CliRunner().invoke(bench, arguments)
    assert result.exit_code == 1
    assert "CERTIFICATE_VERIFY_FAILED" in result.stderr
