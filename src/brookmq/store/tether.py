"""Run as a script between the node and a program: `python tether.py PARENT_PID PROGRAM ARGUMENTS…`.

Asks the kernel to kill this process when its parent dies (PR_SET_PDEATHSIG), and becomes the program, which keeps that
wish over exec. A parent that died before the wish was made is noticed by its pid.

A script of its own, and not code that runs in the child between fork and exec (`preexec_fn`): the node has threads, and
Python code after a fork in a process with threads can find any lock taken for ever. Without such code the node's child
is made by vfork, too, which does not copy the page tables of a node with gigabytes in memory. It costs 30 ms per start.

It imports nothing of BrookMQ, so that it starts quickly and from any place.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    parent, program = int(arguments[0]), arguments[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        sys.exit(f"tether: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        sys.exit("tether: the node has ended meanwhile")
    try:
        os.execv(program[0], program)  # noqa: S606  the program that the operator chose
    except OSError as error:
        sys.exit(f"tether: {program[0]} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
