"""Who may use the HTTP API.

An :class:`HttpAuthenticator` looks at a request and says who sent it. Until users are configured the answer is
:class:`LoopbackOnly`: whoever is on the same machine may do everything, nobody else anything.

A browser on that machine runs pages of strangers, so being on the machine is not enough:

- a request that a page of another origin caused is refused (``Origin``), or any page could publish;
- the request must be for a loopback name (``Host``), or a page could point its own name at 127.0.0.1 and read on; this
  also keeps a reverse proxy from opening the node to the world by accident.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Annotated, Protocol

from fastapi import Depends, Request

from brookmq.ops.errors import ApiError


@dataclass(frozen=True, slots=True)
class Identity:
    """Who sent a request."""

    name: str


class HttpAuthenticator(Protocol):
    """Tells who sent a request."""

    async def authenticate(self, request: Request) -> Identity:
        """The sender; ``ApiError`` with 401 (who are you?) or 403 (not you)."""


class LoopbackOnly:
    """Everybody on this machine is the operator; nobody else gets in."""

    async def authenticate(self, request: Request) -> Identity:
        if request.client is None or not is_loopback(request.client.host):
            raise ApiError(HTTPStatus.FORBIDDEN, "without a user the HTTP API serves this machine only")
        if not is_loopback(request.url.hostname or ""):
            raise ApiError(
                HTTPStatus.FORBIDDEN,
                "without a user the HTTP API answers only to 127.0.0.1, [::1] or localhost as host name",
            )
        return Identity("operator")


async def require_login(request: Request) -> Identity:
    """The dependency of every resource but the availability checks."""
    refuse_other_origins(request)
    authenticator: HttpAuthenticator = request.app.state.authenticator
    return await authenticator.authenticate(request)


def refuse_other_origins(request: Request) -> None:
    """Refuse what a web page of another origin made a browser send, whatever credentials it carries."""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise ApiError(HTTPStatus.FORBIDDEN, f"requests of web pages from {origin} are not served")


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine."""
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


LoggedIn = Annotated[Identity, Depends(require_login)]
