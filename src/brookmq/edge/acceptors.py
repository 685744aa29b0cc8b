"""Two ways to accept connections from a listening socket, with one face: ``start``, ``pause``, ``close``.

``TransportAcceptor`` leaves accepting to the event loop, which is the cheapest way to a transport; it serves plain TCP,
WebSocket and Unix listeners. ``SocketAcceptor`` accepts itself and hands out sockets; it serves listeners where
something has to happen before there is a transport: a PROXY header to be read, a limit to be checked before the cost of
a TLS handshake. Both can pause, while callers wait in the kernel's backlog.

Running out of open files must not spin the loop: the event loop sheds such connections (accepts and closes them), and
``SocketAcceptor`` pauses. It should not come to that, since the node counts its connections (``limits.Capacity``).
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Any, cast

ACCEPTS_PER_TURN = 16  # then others get their turn of the loop
OUT_OF_FILES_PAUSE_SECONDS = 1.0
_OUT_OF_RESOURCES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class Acceptor:
    """What both have in common: the pause."""

    def __init__(self, listening: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._listening = listening
        self._loop = loop
        self._paused: asyncio.TimerHandle | None = None  # while it is paused: what ends the pause
        self._closed = False

    def pause(self, seconds: float) -> None:
        """Accept nothing for so long. A second pause while one lasts changes nothing."""
        if self._paused is None and not self._closed:
            self._paused = self._loop.call_later(seconds, self._end_pause)
            self._stop()

    def _end_pause(self) -> None:
        self._paused = None
        if not self._closed:
            self._go_on()

    def close(self) -> None:
        """Accept no more, and refuse who comes now."""
        if self._closed:
            return
        self._closed = True
        if self._paused is not None:
            self._paused.cancel()
        else:
            self._stop()
        self._listening.close()

    def _stop(self) -> None:
        raise NotImplementedError

    def _go_on(self) -> None:
        raise NotImplementedError


class TransportAcceptor(Acceptor):
    """The event loop accepts; ``arrived`` gets each transport, before anything is read from it."""

    def __init__(
        self,
        listening: socket.socket,
        backlog: int,
        arrived: Callable[[asyncio.Transport], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(listening, loop)
        self._backlog = backlog
        self._door = _Door(arrived)
        self._server: asyncio.Server | None = None
        self._starting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        # The server closes its socket when it stops; it gets a duplicate, so that a pause keeps the backlog alive.
        server = await self._loop.create_server(lambda: self._door, sock=self._listening.dup(), backlog=self._backlog)
        if self._closed or self._paused is not None:  # in the meantime
            server.close()
        else:
            self._server = server

    def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def _go_on(self) -> None:
        self._starting = self._loop.create_task(self.start())


class _Door(asyncio.Protocol):
    """The protocol of a transport until the first layer takes over; it keeps nothing, so one serves all."""

    def __init__(self, arrived: Callable[[asyncio.Transport], None]) -> None:
        self._arrived = arrived

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._arrived(cast("asyncio.Transport", transport))


class SocketAcceptor(Acceptor):
    """Accepts itself; ``arrived`` gets each socket with the address of the peer, ``starved`` an error of the system."""

    def __init__(
        self,
        listening: socket.socket,
        arrived: Callable[[socket.socket, Any], None],
        starved: Callable[[OSError], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(listening, loop)
        self._arrived = arrived
        self._starved = starved

    async def start(self) -> None:
        self._go_on()

    def _go_on(self) -> None:
        self._loop.add_reader(self._listening, self._accept)

    def _stop(self) -> None:
        self._loop.remove_reader(self._listening)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                accepted, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                self.pause(OUT_OF_FILES_PAUSE_SECONDS)
                self._starved(error)
                return
            accepted.setblocking(False)
            self._arrived(accepted, address)
            if self._paused is not None or self._closed:
                return
