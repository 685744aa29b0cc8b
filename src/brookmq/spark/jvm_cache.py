"""Files with which a Java starts Spark in half the time: classes that are loaded, linked and profiled already.

Such a file belongs to one build of Java, one version of Spark and one list of jars, all of which are in the name of its
folder: what has changed gets another folder, and nobody has to throw anything away. Beside it lies the command that
Spark's own launcher made, which would take another start of Java to find out.

    CACHE/brookmq/jvm/25.0.2-4.3.0-0a1b2c3d4e5f/{start.json, classes}

The file is made in a folder with another name (`warming`) that gets its own when all is there: so nobody sees half of
one. Whatever is wrong with a cache, it is left alone, and Spark starts as it would without.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from brookmq.spark.java import Java, belongs_to_us, cache_folder

log = logging.getLogger("brookmq.spark")

MODE_VARIABLE: Final = "BROOKMQ_JVM_CACHE"
MODES: Final = ("on", "use", "off")  # used and made, used where it is there, neither

AOT_VERSION_MIN: Final = 25  # from here on a cache also has profiles, and is made by one command
UNUSED_DAYS_MAX: Final = 30.0
KEY_DIGITS: Final = 12

_CLASSES: Final = "classes"
_START: Final = "start.json"


@dataclass(frozen=True, slots=True)
class Installation:
    """A Java and a Spark that start together."""

    java: Java
    spark: Path  # the folder of the package pyspark
    spark_version: str

    @property
    def key(self) -> str:
        """What a cache depends on."""
        facts = [str(self.java.home), (self.java.home / "release").read_text(errors="replace")]
        for jar in sorted((self.spark / "jars").glob("*.jar")):
            found = jar.stat()
            facts.append(f"{jar} {found.st_size} {found.st_mtime_ns}")
        digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:KEY_DIGITS]
        return f"{self.java.version}-{self.spark_version}-{digest}"


@dataclass(frozen=True, slots=True)
class JvmCache:
    """The cache of an installation, whether it is there or not."""

    installation: Installation
    folder: Path

    @classmethod
    def of(cls, installation: Installation, root: Path | None = None) -> JvmCache:
        return cls(installation, (root or cache_folder() / "jvm") / installation.key)

    @property
    def classes(self) -> Path:
        return self.folder / _CLASSES

    def load(self) -> list[str] | None:
        """Options of Java for a start with this cache; None when there is none that can be used."""
        try:
            start = self.folder / _START
            if not start.exists():
                return None
            kept = json.loads(start.read_text())
            options, size = kept["options"], kept["bytes"]
            if not isinstance(options, list) or not all(isinstance(one, str) for one in options):
                raise ValueError("its options are no texts")
            for path in (self.folder, start, self.classes):
                if not belongs_to_us(path):
                    raise PermissionError(f"{path} may be somebody else's")
            if self.classes.stat().st_size != size:
                raise ValueError(f"{self.classes} is not whole")
            os.utime(start)
        except (OSError, ValueError, LookupError, TypeError) as error:
            log.warning("Spark starts without the cache %s: %s", self.folder, error)
            return None
        return [*options, *use_options(self.installation.java, self.classes)]

    def save(self, made: Path, options: list[str]) -> None:
        """Takes over what was made in a folder of its own."""
        kept = {"options": options, "bytes": (made / _CLASSES).stat().st_size}
        (made / _START).write_text(json.dumps(kept))
        for path in (made, made / _START, made / _CLASSES):
            path.chmod(path.stat().st_mode & 0o755)
        self.drop()
        made.rename(self.folder)

    def drop(self) -> None:
        """Away with it. A Java that uses it goes on: it has the file open."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def drop_others(self) -> None:
        """Caches that nobody has used for long: of earlier versions, most of the time."""
        oldest = time.time() - UNUSED_DAYS_MAX * 86400
        for other in self.folder.parent.glob(f"*/{_START}"):
            if other.parent != self.folder and other.stat().st_mtime < oldest:
                shutil.rmtree(other.parent, ignore_errors=True)


def use_options(java: Java, classes: Path) -> list[str]:
    """For a start with a cache. What Java finds wrong with it is asked for (`launching`), and not for a terminal."""
    if java.version >= AOT_VERSION_MIN:
        return [f"-XX:AOTCache={classes}", "-Xlog:aot*=off"]
    return [f"-XX:SharedArchiveFile={classes}", "-Xlog:cds*=off"]


def make_options(java: Java, folder: Path) -> list[str]:
    """For a run that leaves a cache in a folder when it ends."""
    classes = folder / _CLASSES
    if java.version >= AOT_VERSION_MIN:
        return [f"-XX:AOTCacheOutput={classes}"]
    return [f"-XX:ArchiveClassesAtExit={classes}"]


def mode() -> str:
    """What the environment says."""
    given = os.environ.get(MODE_VARIABLE, MODES[0])
    if given not in MODES:
        log.warning("%s is %r; it takes %s", MODE_VARIABLE, given, ", ".join(MODES))
        return MODES[0]
    return given
