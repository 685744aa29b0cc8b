"""Java is found without the user's help."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from brookmq.spark import java
from brookmq.spark.java import belongs_to_us, cache_folder, java_home, look_at, packaged_java, shim


def fake_java(home: Path, version: str, modules: str | None = None) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (home / "bin" / "java").chmod(0o755)
    lines = [f'JAVA_VERSION="{version}"'] + ([] if modules is None else [f'MODULES="{modules}"'])
    (home / "release").write_text("\n".join(lines))
    return home


def environment(tmp_path: Path, path: Path | None = None, home: str = "") -> dict[str, str]:
    return {"PATH": str((path or tmp_path / "nowhere") / "bin"), "JAVA_HOME": home, "XDG_CACHE_HOME": str(tmp_path)}


def test_java_home_comes_first(tmp_path: Path) -> None:
    found = fake_java(tmp_path / "java", "21.0.1")
    assert java_home(environment(tmp_path, found, "/some/where")) == Path("/some/where")


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.1", "25-ea", "25+36"])
def test_then_the_one_on_the_path(tmp_path: Path, version: str) -> None:
    found = fake_java(tmp_path / "java", version)
    (tmp_path / "links" / "bin").mkdir(parents=True)
    (tmp_path / "links" / "bin" / "java").symlink_to(found / "bin" / "java")
    assert java_home(environment(tmp_path, tmp_path / "links")) == found


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_300"])
def test_an_old_one_is_passed_over(tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake_java(tmp_path / "old", version)
    ours = fake_java(tmp_path / "ours", "25.0.2", f"java.base {java.VECTOR_MODULE}")
    monkeypatch.setattr(java, "packaged_java", lambda: look_at(ours))
    assert java_home(environment(tmp_path, old)) == ours


def test_the_packaged_one_runs_and_is_told_nothing_that_it_does_not_know(tmp_path: Path) -> None:
    home = java_home(environment(tmp_path))
    assert home is not None
    assert home.is_relative_to(tmp_path)
    subprocess.run([home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"], check=True)
    assert java_home(environment(tmp_path)) == home


def test_the_script_keeps_all_other_arguments(tmp_path: Path) -> None:
    found = look_at(fake_java(tmp_path / "a b'c", "25.0.2", "java.base"))
    assert found is not None
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "*", "", "--add-modules=other", "$HOME"]
    done = subprocess.run(
        [shim(found, tmp_path / "cache") / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:-1] == [one for one in arguments if "vector" not in one]


def test_the_script_s_folder_says_what_is_behind_it(tmp_path: Path) -> None:
    found = look_at(fake_java(tmp_path / "java", "25.0.2", "java.base"))
    assert found is not None
    home = shim(found, tmp_path / "cache")
    assert look_at(home) == found._replace(home=home)


def test_a_folder_that_can_not_be_written_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    home = java_home(environment(tmp_path) | {"XDG_CACHE_HOME": str(tmp_path / "file")})
    assert home is not None
    subprocess.run([home / "bin" / "java", "-version"], check=True)
    assert "is of no use" in caplog.text


def test_a_folder_beside_those_of_others_is_ours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java.tempfile, "tempdir", str(tmp_path))
    folder = cache_folder({})
    assert folder == tmp_path / f"brookmq-{os.getuid()}"
    assert belongs_to_us(folder)
    assert cache_folder({}) == folder
    folder.chmod(0o777)
    other = cache_folder({})
    assert other != folder
    assert belongs_to_us(other)
    folder.rmdir()
    folder.symlink_to(other)
    assert cache_folder({}) not in (folder, other)


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "packaged_java", lambda: None)
    assert java_home(environment(tmp_path)) is None


def test_what_a_folder_without_java_says(tmp_path: Path) -> None:
    assert look_at(tmp_path) is None
    (tmp_path / "release").write_text("JAVA_VERSION=unknown")
    assert look_at(tmp_path) is None
    packaged = packaged_java()
    assert packaged is not None
    assert not packaged.has_vector_module
