"""Names of clients and topics as segments of a path.

A client id or a topic may contain slashes. In a path they are percent-encoded (``clients/room%2F7``), but the server
hands the path over decoded, where ``room/7`` would be two segments. :class:`NamesInPaths` keeps an encoded slash apart
from a plain one while the route is found; :func:`name_from_path` gives the handler the name itself.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from fastapi import Path
from pydantic import AfterValidator
from starlette.types import ASGIApp, Receive, Scope, Send


class NamesInPaths:
    """Decodes the path of a request but for the slashes inside of names."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path"):
            scope["path"] = _decode_but_slashes(scope["raw_path"].decode("latin-1"))
        await self._app(scope, receive, send)


def _decode_but_slashes(raw_path: str) -> str:
    """Everything decoded except ``%2F`` and, so that it can be told from a literal one, ``%25``."""
    kept = raw_path.replace("%25", "%2525").replace("%2F", "%252F").replace("%2f", "%252F")
    return unquote(kept)


def name_from_path(segment: str) -> str:
    """The name that a segment of a path stands for."""
    return segment.replace("%2F", "/").replace("%25", "%")


NameInPath = Annotated[str, Path(description="percent-encoded, slashes as %2F"), AfterValidator(name_from_path)]
