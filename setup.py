"""Compiles the hot modules with Cython; everything else about the project stands in pyproject.toml.

A module is compiled when it is a ``.pyx``, or a ``.py`` with a ``.pxd`` of the same name beside it: nothing has to be
listed here. Where there is no C compiler the plain ``.py`` files run, more slowly, and ``brookmq --version`` says so. A
mistake in the source is something else: there Cython stops the build.
"""

from __future__ import annotations

import os
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

SOURCE = Path("src")

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "nonecheck": False,
    "annotation_typing": False,  # types come from the .pxd: a Python int in an annotation is not a C int
    "embedsignature": True,
}


def hot_modules() -> list[Path]:
    """The files to compile, in a fixed order so that builds are repeatable."""
    kernels = list(SOURCE.rglob("*.pyx"))  # the .py beside such a file is its plain twin
    augmented = [pxd.with_suffix(".py") for pxd in SOURCE.rglob("*.pxd") if pxd.with_suffix(".pyx") not in kernels]
    return sorted([path for path in augmented if path.exists()] + kernels)


def extension(path: Path) -> Extension:
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    return Extension(name, [str(path)], extra_compile_args=["-O3", "-g0", "-w"])


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("brookmq: no Cython, so the plain Python files are used")
        return []
    # Two at a time: sdist and wheel builds run on small machines, and a third C compiler gains nothing there.
    threads = min(2, os.cpu_count() or 1)
    compiled: list[Extension] = cythonize(
        [extension(path) for path in hot_modules()],
        build_dir="build/cython",
        include_path=[str(SOURCE)],
        compiler_directives=DIRECTIVES,
        nthreads=threads,
        quiet=True,
    )
    for each in compiled:
        each.optional = True  # here, and not when it is made: Cython does not carry it over to what it returns
    return compiled


class AllOrNothing(build_ext):
    """Compiled modules know each other's structures: one of them left plain, or left over, would not fit the rest."""

    def build_extensions(self) -> None:
        self.failed: list[str] = []
        super().build_extensions()
        if not self.failed:
            return
        for each in self.extensions:
            Path(self.get_ext_fullpath(each.name)).unlink(missing_ok=True)
            (SOURCE / self.get_ext_filename(each.name)).unlink(missing_ok=True)
        print(f"brookmq: the C compiler failed or is missing (at {self.failed[0]}), so the plain Python files are used")

    def build_extension(self, ext: Extension) -> None:
        if self.failed:
            return
        try:
            super().build_extension(ext)
        except (BaseError, CCompilerError):
            self.failed.append(ext.name)


# `make` registers the checkout once and compiles with build_ext, which remembers what it did; an editable install would
# compile everything each time, in a folder of its own.
compiles = os.environ.get("BROOKMQ_COMPILE", "1") != "0"

setup(
    ext_modules=extensions() if compiles else [],
    cmdclass={"build_ext": AllOrNothing},
    options={"build_ext": {"parallel": 2}},
)
