"""Backups over HTTP, and with ``brookmq ctl data``."""

from __future__ import annotations

import json
import socket
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from brookmq.ops import bounds
from brookmq.ops.ctl import ctl
from brookmq.store.backup import file_format as file
from brookmq.store.backup.file_format import SectionWriter
from tests.ops.memory_node import MemoryNode

URL = "/api/v1/data"
CONFIGURATION = '[node]\nname = "ä"\n'


def section(kind: int, records: list[tuple[bytes, bytes]]) -> bytes:
    writer = SectionWriter(kind)
    return writer.begin() + writer.put(records) + writer.end()


HEAD = file.head({"version": "0.1.0", "node": "n1", "exported_at": 1.0, "journal": True, "shards": 4})
SECTIONS = [
    section(file.CONFIGURATION, [(b"", CONFIGURATION.encode())]),
    section(file.VALUES, [(b"ra", b"1"), (b"rb", b"2")]),
    section(file.SESSIONS, [(b"cx", bytes(100_000))]),
    section(file.JOURNAL, [(b"0", bytes(300_000))]),
]
BACKUP = [HEAD, *SECTIONS, file.end()]


class Ctl:
    def __init__(self, address: str) -> None:
        self._url = f"http://{address}"

    def __call__(self, *arguments: str | Path) -> Result:
        return CliRunner().invoke(ctl, ["data", *map(str, arguments)], env={"BROOKMQ_URL": self._url})


@pytest.fixture
def run(address: str) -> Ctl:
    return Ctl(address)


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    path = tmp_path / "kept"
    path.write_bytes(b"".join(BACKUP))
    return path


# -- HTTP


def test_an_export_is_streamed(api: httpx.Client, memory_node: MemoryNode) -> None:
    memory_node.data = [b"a" * 100_000, b"b"]
    with api.stream("GET", URL, params={"journal": True}) as response:
        assert response.read() == b"a" * 100_000 + b"b"
    assert memory_node.asked == {"journal": True}
    assert response.headers["content-type"] == "application/vnd.brookmq.data"


def test_an_export_that_can_not_be_had_is_an_answer(api: httpx.Client, memory_node: MemoryNode) -> None:
    memory_node.no_data = "the store is starting"
    response = api.get(URL)
    assert response.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert response.json()["message"] == "the store is starting"


def test_an_import_may_be_larger_than_other_requests(api: httpx.Client, memory_node: MemoryNode) -> None:
    pieces = [bytes(1024 * 1024)] * 6
    assert sum(map(len, pieces)) > bounds.BODY_BYTES_MAX
    response = api.put(URL, content=iter(pieces), params={"replace": True})
    assert response.json() == {
        "values": 1, "sessions": 2, "messages": 3, "messages_left": 4, "same_configuration": False, "pipeline": 0,
    }  # fmt: skip
    assert len(memory_node.imported) == sum(map(len, pieces))
    assert memory_node.asked == {"replace": True}


def test_an_import_that_stops_coming_ends(
    address: str, memory_node: MemoryNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "BODY_WAIT_S", 0.2)
    host, port = address.split(":")
    head = f"PUT {URL} HTTP/1.1\r\nHost: {address}\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(head.encode() + b"1\r\na\r\n")
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"nothing came for" in answer
    assert memory_node.imported == b"a"


# -- ctl data


def test_an_export_is_written_checked_and_private(run: Ctl, memory_node: MemoryNode, tmp_path: Path) -> None:
    memory_node.data = BACKUP
    path = tmp_path / "backup"
    result = run("export", path, "--journal")
    assert result.exit_code == 0, result.output
    assert path.read_bytes() == b"".join(BACKUP)
    assert path.stat().st_mode & 0o077 == 0
    assert "values\t2 records, sha256" in result.stdout
    assert memory_node.asked == {"journal": True}
    assert [entry.name for entry in tmp_path.iterdir()] == ["backup"]
    assert run("export", path).exit_code == 2
    answer = json.loads(run("export", path, "--force", "--json").stdout)
    assert answer["sections"]["sessions"]["records"] == 1
    assert answer["about"]["node"] == "n1"


def test_an_export_that_ends_early_leaves_no_file(run: Ctl, memory_node: MemoryNode, tmp_path: Path) -> None:
    memory_node.data = BACKUP[:-1]
    result = run("export", tmp_path / "backup")
    assert result.exit_code == 1
    assert "the export was not complete: the backup is cut off" in result.stderr
    memory_node.no_data = "the store is starting"
    assert "the node says: the store is starting" in run("export", tmp_path / "backup").stderr
    assert list(tmp_path.iterdir()) == []


def test_an_import_sends_the_journal_before_the_sessions(run: Ctl, memory_node: MemoryNode, backup: Path) -> None:
    result = run("import", backup)
    assert result.exit_code == 0, result.output
    configuration, values, sessions, journal = SECTIONS
    assert memory_node.imported == HEAD + configuration + values + journal + sessions + file.end()
    assert "sessions\t2" in result.stdout
    assert memory_node.asked == {"replace": False}
    result = run("import", backup, "--replace", "--json")
    assert json.loads(result.stdout)["messages_left"] == 4
    assert memory_node.asked == {"replace": True}


def test_an_import_says_what_is_not_as_it_was(run: Ctl, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(file.head({"journal": False}) + SECTIONS[1] + file.end())
    said = run("import", path, "--replace").stderr
    assert "without the messages that waited" in said
    assert "configuration is another one" in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"something else", "not a backup of BrookMQ"),
        (file.MAGIC + b"\x00\x07", "format 7, and this BrookMQ knows format 1 alone"),
        (b"".join(BACKUP[:-1]), "cut off"),
        (b"".join(BACKUP).replace(b"ra", b"rx"), "values of the backup is damaged"),
    ],
)
def test_nothing_of_a_file_that_is_not_right_is_sent(
    run: Ctl, memory_node: MemoryNode, tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "kept"
    path.write_bytes(content)
    result = run("import", path)
    assert result.exit_code == 1
    assert said in result.stderr
    assert memory_node.asked == {}


def test_what_the_node_refuses_is_said(run: Ctl, memory_node: MemoryNode, backup: Path) -> None:
    memory_node.no_data = "the node has 3 sessions"
    result = run("import", backup)
    assert (result.exit_code, "the node says: the node has 3 sessions" in result.stderr) == (1, True)


def test_a_backup_is_shown_without_a_node(backup: Path) -> None:
    shown = CliRunner().invoke(ctl, ["data", "show", str(backup)])
    assert "node\tn1" in shown.stdout
    assert "journal\t1 records" in shown.stdout
    assert CliRunner().invoke(ctl, ["data", "config", str(backup)]).stdout == CONFIGURATION
