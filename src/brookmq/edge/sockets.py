"""Listening sockets: bound and listening before anything else starts, so that an address in use is an error at once.

SO_REUSEADDR lets a node start again while old connections linger in the kernel; it does not let two nodes listen on one
address. An IPv6 socket is for IPv6 alone, so that `0.0.0.0` and `[::]` can stand side by side.

The kernel would take up to 4 MiB for a peer that does not read; a thousand such subscribers would use up the memory
that it has for TCP, and everybody's latency with it. So what is not sent yet is bounded for each connection; what is
under way to a distant peer is not.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path

from brookmq.base.errors import ConfigError

UNSENT_BYTES_MAX = 128 << 10  # in the kernel for one connection, before its outlet has to wait

_REASONS = {
    errno.EADDRINUSE: "is in use by another program",
    errno.EACCES: "is not allowed for this user",
    errno.EADDRNOTAVAIL: "is not an address of this machine",
    errno.ENOENT: "has no folder to be in",
    errno.ENOTDIR: "has no folder to be in",
}


def bind_tcp(host: str, port: int, backlog: int, key: str) -> list[socket.socket]:
    """One listening socket for each address that ``host`` stands for. ``key`` is the key of the configuration."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigError(key, f"{host} is not the name or address of a host") from error
    sockets: list[socket.socket] = []
    for family, kind, protocol, _, address in dict.fromkeys(found):
        bound = socket.socket(family, kind, protocol)
        sockets.append(bound)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # inherited by the connections that it accepts
                bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES_MAX)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # The second address of a name gets the port that "any" meant for the first.
            chosen = port or (sockets[0].getsockname()[1] if len(sockets) > 1 else 0)
            bound.bind((address[0], chosen, *address[2:]))
            bound.listen(backlog)
            bound.setblocking(False)
        except OSError as error:
            close_all(sockets)
            raise _bind_error(key, f"{host}:{port}" if ":" not in host else f"[{host}]:{port}", error) from error
    return sockets


def bind_unix(path: str, backlog: int, key: str) -> socket.socket:
    """A listening Unix socket. A file that a dead process left behind is replaced, one that somebody serves is not."""
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path, key)
        bound.bind(path)
        bound.listen(backlog)
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        raise _bind_error(key, path, error) from error
    except ConfigError:
        bound.close()
        raise
    return bound


def _remove_stale(path: str, key: str) -> None:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 (names may begin with a null byte: sockets without a file)
    except (FileNotFoundError, ValueError):
        return
    if not stat.S_ISSOCK(mode):
        raise ConfigError(key, f"{path} exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink(missing_ok=True)  # nobody listens
        except BlockingIOError:
            pass  # somebody does, with a full backlog: bind says so
        # else somebody listens: bind fails with EADDRINUSE


def close_all(sockets: list[socket.socket]) -> None:
    for bound in sockets:
        bound.close()


def _bind_error(key: str, address: str, error: OSError) -> ConfigError:
    reason = _REASONS.get(error.errno or 0)
    return ConfigError(
        key, f"{address} {reason}" if reason else f"cannot listen on {address}: {error.strerror or error}"
    )
