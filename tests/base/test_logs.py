"""Lines for people, objects for machines, levels and rotation."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from brookmq.base import logs
from brookmq.base.config import Log
from brookmq.base.errors import CallerError, ConfigError

log = logging.getLogger("brookmq.tests")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("brookmq")
    before = root.handlers[:], root.level, ours.level
    yield
    for handler in root.handlers[:]:
        if handler not in before[0]:
            root.removeHandler(handler)
            handler.close()
    root.setLevel(before[1])
    ours.setLevel(before[2])
    logging.captureWarnings(False)


def configured(stream: io.StringIO | None = None, **settings: object) -> io.StringIO:
    stream = stream or io.StringIO()
    logs.configure(Log.model_validate(settings), stream)
    return stream


def test_human_lines_have_fields_beside_a_fixed_message() -> None:
    stream = configured()
    log.info("client connected", extra={"client_id": "pump 7", "port": 1883, "empty": ""})
    assert stream.getvalue().endswith(' INFO tests: client connected client_id="pump 7" port=1883 empty=""\n')
    assert "\033" not in stream.getvalue()


def test_a_terminal_gets_colours_unless_the_user_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = configured(Terminal())
    log.warning("look", extra={"key": "value"})
    assert "\033[33mWARNING\033[0m" in stream.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    stream = configured(Terminal())
    log.warning("look")
    assert "\033" not in stream.getvalue()


def test_what_a_peer_sent_cannot_make_lines_of_its_own() -> None:
    stream = configured(Terminal())
    log.info("connected %s", "a\nb\033[1m", extra={"client_id": "x\ny\033[2Jz\u2028"})
    assert stream.getvalue().count("\n") == 1
    assert "\033[1m" not in stream.getvalue()
    assert "\033[2J" not in stream.getvalue()
    assert "\u2028" not in stream.getvalue()


def test_json_is_one_object_per_line() -> None:
    stream = configured(format="json")
    log.warning("look %s", "here", extra={"client_id": "a\nb", "where": Path("x"), "level": "not ours"})
    [line] = stream.getvalue().splitlines()
    entry = json.loads(line)
    assert entry.pop("time").endswith("+00:00")
    assert entry == {
        "level": "warning",
        "logger": "brookmq.tests",
        "message": "look here",
        "client_id": "a\nb",
        "where": "x",
    }


@pytest.mark.parametrize("kind", ["human", "json"])
def test_tracebacks(kind: str) -> None:
    stream = configured(format=kind)
    try:
        int("broken")
    except ValueError:
        log.exception("failed", stack_info=kind == "human")
    assert "ValueError: invalid literal" in stream.getvalue()
    if kind == "json":
        assert "ValueError: invalid literal" in json.loads(stream.getvalue())["exception"]


def test_the_level_changes_at_run_time() -> None:
    stream = configured(level="warning")
    log.info("one")
    logs.set_level("debug")
    assert logs.level() == "debug"
    log.debug("two")
    assert "one" not in stream.getvalue()
    assert "two" in stream.getvalue()
    with pytest.raises(CallerError, match="no such log level: loud"):
        logs.set_level("loud")  # type: ignore[arg-type]


def test_of_other_packages_only_warnings_are_written() -> None:
    stream = configured(level="debug")
    logging.getLogger("somebody.else").info("chatter")
    logging.getLogger("somebody.else").warning("trouble")
    assert "chatter" not in stream.getvalue()
    assert "trouble" in stream.getvalue()


def test_configuring_again_replaces() -> None:
    first = configured()
    second = configured()
    log.info("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1


def test_files_rotate_and_the_oldest_goes(tmp_path: Path) -> None:
    file = tmp_path / "node.log"
    configured(file=str(file), rotate_bytes=1024, rotate_count=2)
    for number in range(100):
        log.info("line %d", number, extra={"filler": "x" * 50})
    assert {path.name for path in tmp_path.iterdir()} == {"node.log", "node.log.1", "node.log.2"}
    assert all(path.stat().st_size <= 1024 for path in tmp_path.iterdir())
    assert "line 99" in file.read_text()


def test_a_file_that_cannot_be_written_is_a_wrong_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"log\.file: cannot write .*: No such file or directory"):
        configured(file=str(tmp_path / "none" / "node.log"))
