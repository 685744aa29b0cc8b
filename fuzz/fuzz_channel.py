"""The fuzz target: `python -m fuzz.fuzz_channel [CORPUS…] [-libFuzzer options]`.

The broker runs as plain Python here, since only that can be instrumented; `fuzz.replay` runs the corpus against the
compiled form. ``FUZZ_PLANT=module:function`` breaks the broker on purpose first, for the test that the fuzzer finds it.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

os.environ["BROOKMQ_PURE"] = "1"

import atheris  # type: ignore[import-not-found,unused-ignore]

import brookmq  # noqa: F401 - puts its finder of plain modules in place; atheris' own has to stand before it

with atheris.instrument_imports(include=["brookmq"]):
    from fuzz.mutator import mutate
    from fuzz.world import run

CORPUS = Path(__file__).with_name("corpus")
SIZE_MAX = 2048  # bytes of one input


def target(data: bytes) -> None:
    run(data)


def custom_mutator(data: bytes, size_max: int, seed: int) -> bytes:
    return mutate(data, size_max, seed, atheris.Mutate)


def main() -> None:
    plant = os.environ.get("FUZZ_PLANT")
    if plant:
        module, function = plant.split(":")
        with atheris.instrument_imports(include=["tests"]):
            getattr(importlib.import_module(module), function)()
    arguments = sys.argv[1:] or [str(CORPUS)]
    given = {argument.split("=")[0] for argument in arguments}
    # Few changes at a time and no crossing of inputs: a connection ends at its first mistake.
    defaults = {"-max_len": SIZE_MAX, "-timeout": 10, "-rss_limit_mb": 1024, "-mutate_depth": 2, "-cross_over": 0}
    options = [f"{name}={value}" for name, value in defaults.items() if name not in given]
    again = f"{sys.executable} -m fuzz.fuzz_channel"  # libFuzzer starts itself by this when it merges corpora
    atheris.Setup([again, *options, *arguments], target, custom_mutator=custom_mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
