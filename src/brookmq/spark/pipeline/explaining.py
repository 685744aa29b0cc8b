"""What Spark says about a stream that failed, in one line.

It hands on the traceback of a Python process, inside of an exception, inside of another one. What we have said
ourselves begins with ``brookmq:``; else the innermost sentence tells most.
"""

from __future__ import annotations

import re
from typing import Final

CHARACTERS_MAX: Final = 500
_OURS: Final = re.compile(r"brookmq: (.+)")
_PYTHON: Final = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception)): (.+)$", re.MULTILINE)
_CLASS: Final = re.compile(r"\[[A-Z0-9_.]+\]\s*")
_STATE: Final = re.compile(r"\s*SQLSTATE:.*", re.DOTALL)
_FRAME: Final = "terminated with exception:"


def explained(text: str) -> str:
    """The sentence that tells most."""
    found = _OURS.findall(text)
    if found:
        return _short(found[-1])
    raised = _PYTHON.findall(text)
    if raised:
        kind, message = raised[-1]
        return _short(f"{kind}: {message}")
    inner = text.rpartition(_FRAME)[2].strip() or text.strip()
    return _short(_CLASS.sub("", _STATE.sub("", inner)).strip().partition("\n")[0])


def _short(text: str) -> str:
    text = _STATE.sub("", text).strip()
    return text if len(text) <= CHARACTERS_MAX else text[: CHARACTERS_MAX - 1] + "…"
