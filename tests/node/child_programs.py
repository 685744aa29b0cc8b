"""Small programs for tests of processes: what a rule checker or a pipeline could do, well or badly."""

from __future__ import annotations

import os
import time
from pathlib import Path

CHECKER = """
import json, os, subprocess, sys, time
for line in sys.stdin.buffer:
    question = json.loads(line)
    do = question["do"]
    if do == "sleep":
        time.sleep(600)
    if do == "die":
        print("what happened: this", file=sys.stderr, flush=True)
        os._exit(3)
    if do == "mumble":
        sys.stdout.write("hm\\n")
    elif do == "wrong id":
        sys.stdout.write('{"id": -1}\\n')
    elif do == "refuse":
        error = {"message": "no", "line": 1, "column": 2}
        sys.stdout.write(json.dumps({"id": question["id"], "error": error}) + "\\n")
    elif do == "child":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        sys.stdout.write(json.dumps({"id": question["id"], "pid": child.pid}) + "\\n")
    else:
        answer = {"id": question["id"], "pid": os.getpid(), "size": len(line), "folder": sys.argv[1]}
        answer["text"] = "x" * question.get("want", 0)
        sys.stdout.write(json.dumps(answer) + "\\n")
    sys.stdout.flush()
"""

DEADLINE_S = 60.0


def program(folder: Path, text: str, name: str = "program.py") -> tuple[str, ...]:
    """Arguments for Python."""
    file = folder / name
    file.write_text(text)
    return (str(file),)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until_gone(*pids: int) -> None:
    """Fails if one of them stays."""
    deadline = time.monotonic() + DEADLINE_S
    while left := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < deadline, f"{left} still there (this is {os.getpid()})"
        time.sleep(0.01)
