"""Runs inputs without the fuzzer, in the form that is installed: `python -m fuzz.replay [FILE or FOLDER…]`.

Without arguments: the corpus that is kept. It says what was run, or prints the input and ends with the error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from brookmq import _pure
from fuzz.program import Kind, parse
from fuzz.world import run

CORPUS = Path(__file__).with_name("corpus")


def files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.iterdir()) if path.is_dir() else [path]


def readable(data: bytes) -> str:
    program = parse(data)
    lines = [f"configuration {program.configuration.hex()}"]
    lines += [f"{Kind(kind).name} at {place}: {data.hex()}" for kind, place, data in program.operations]
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    count = 0
    for path in files([Path(argument) for argument in arguments] or [CORPUS]):
        data = path.read_bytes()
        try:
            run(data)
        except BaseException:
            print(f"{path}\n{readable(data)}", flush=True)
            raise
        count += 1
    print(f"{count} inputs, {_pure.form()}: no finding")


if __name__ == "__main__":
    main(sys.argv[1:])
