"""The cache of a start: named after what it depends on, and never trusted blindly."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

from brookmq.spark import jvm_cache
from brookmq.spark.java import Java
from brookmq.spark.jvm_cache import Installation, JvmCache, make_options, mode

OPTIONS = ["--add-opens=a", "-Db=c"]


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    home, spark = tmp_path / "java", tmp_path / "pyspark"
    home.mkdir()
    (home / "release").write_text('JAVA_VERSION="25.0.2"')
    (spark / "jars").mkdir(parents=True)
    for name in ("b.jar", "a.jar", "c.txt"):
        (spark / "jars" / name).write_text(name)
    return Installation(Java(home, 25, has_vector_module=False), spark, "4.3.0")


def saved(installation: Installation, root: Path) -> JvmCache:
    cache = JvmCache.of(installation, root)
    making = root / "making"
    making.mkdir(parents=True)
    (making / "classes").write_bytes(b"x" * 100)
    cache.save(making, OPTIONS)
    return cache


def test_what_was_saved_is_used(installation: Installation, tmp_path: Path) -> None:
    cache = JvmCache.of(installation, tmp_path / "root")
    assert cache.load() is None
    cache = saved(installation, tmp_path / "root")
    assert cache.load() == [*OPTIONS, f"-XX:AOTCache={cache.classes}", "-Xlog:aot*=off"]
    assert not (tmp_path / "root" / "making").exists()
    cache.drop()
    assert cache.load() is None


def test_older_versions_of_java_have_another_option(installation: Installation, tmp_path: Path) -> None:
    older = Installation(installation.java._replace(version=21), installation.spark, "4.3.0")
    cache = saved(older, tmp_path / "root")
    assert cache.load() == [*OPTIONS, f"-XX:SharedArchiveFile={cache.classes}", "-Xlog:cds*=off"]
    assert make_options(older.java, tmp_path) == [f"-XX:ArchiveClassesAtExit={tmp_path / 'classes'}"]
    assert make_options(installation.java, tmp_path) == [f"-XX:AOTCacheOutput={tmp_path / 'classes'}"]


def test_all_that_a_cache_depends_on_is_in_its_name(installation: Installation) -> None:
    keys = [installation.key]
    assert keys[0].startswith("25-4.3.0-")
    os.utime(installation.spark / "jars" / "a.jar", (1, 1))
    keys.append(installation.key)
    (installation.spark / "jars" / "d.jar").write_text("d")
    keys.append(installation.key)
    (installation.java.home / "release").write_text('JAVA_VERSION="25.0.3"')
    keys.append(installation.key)
    assert len(set(keys)) == len(keys)
    assert installation.key == keys[-1]


@pytest.mark.parametrize(
    "damage",
    [
        lambda cache: cache.classes.write_bytes(b"x" * 99),
        lambda cache: cache.classes.unlink(),
        lambda cache: cache.classes.chmod(0o666),
        lambda cache: cache.folder.chmod(0o777),
        lambda cache: (cache.folder / "start.json").write_text("{"),
        lambda cache: (cache.folder / "start.json").write_text("[]"),
        lambda cache: (cache.folder / "start.json").write_text(json.dumps({"options": [1], "bytes": 100})),
        lambda cache: (cache.folder / "start.json").write_text(json.dumps({"options": []})),
    ],
)  # fmt: skip
def test_one_that_is_damaged_or_may_be_foreign_is_left_alone(
    installation: Installation, tmp_path: Path, damage: object, caplog: pytest.LogCaptureFixture
) -> None:
    cache = saved(installation, tmp_path / "root")
    assert callable(damage)
    damage(cache)
    with caplog.at_level(logging.WARNING, "brookmq.spark"):
        assert cache.load() is None
    assert "Spark starts without the cache" in caplog.text


def test_another_user_s_is_left_alone(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = saved(installation, tmp_path / "root")
    monkeypatch.setattr(jvm_cache, "belongs_to_us", lambda path: False)
    assert cache.load() is None


def test_those_that_nobody_uses_any_more_go(installation: Installation, tmp_path: Path) -> None:
    root = tmp_path / "root"
    old = saved(installation, root)
    (installation.spark / "jars" / "d.jar").write_text("d")
    recent = saved(installation, root)
    (installation.spark / "jars" / "e.jar").write_text("e")
    current = saved(installation, root)
    for cache in (old, current):
        os.utime(cache.folder / "start.json", (1, 1))
    current.drop_others()
    assert [cache.folder.exists() for cache in (old, recent, current)] == [False, True, True]


def test_the_mode_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.delenv("BROOKMQ_JVM_CACHE", raising=False)
    assert mode() == "on"
    monkeypatch.setenv("BROOKMQ_JVM_CACHE", "off")
    assert mode() == "off"
    monkeypatch.setenv("BROOKMQ_JVM_CACHE", "no")
    assert mode() == "on"
    assert "it takes on, use, off" in caplog.text
