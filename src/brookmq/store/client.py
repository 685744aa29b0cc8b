"""The library's client, made to take TLS seriously and to never wait for a goodbye.

The library begins TLS when the server asks for it in its first line, which comes in plain text: whoever can answer in
the server's place leaves that word out and is told the password. A client with a TLS context insists here.

Before it connects anew the library waits until the old connection is closed. After a handshake that failed that is
never (seen with 2.16), and a server that has frozen is waited for by TLS for half a minute: both end soon here.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import Any, Final

import nats.errors
from nats.aio.client import DEFAULT_BUFFER_SIZE, Client, Srv
from nats.aio.transport import TcpTransport

from brookmq.base.ending import end

GOODBYE_S: Final = 0.2  # that the end of a connection may take


class NoTlsError(nats.errors.Error):
    """The server does not insist on TLS, and this client does."""

    def __str__(self) -> str:
        return "it does not ask for TLS"


class CertificateRefusedError(nats.errors.Error):
    """The server asks for a certificate and has ended the connection over ours, or over none."""

    def __str__(self) -> str:
        return "it asks for a certificate that it trusts, and has closed the connection"


class StoreClient(Client):
    """Says nothing to a server without TLS once it was given a context for TLS."""

    async def finish(self) -> None:
        """Closes, for certain: an attempt to connect anew that hears of it in the turn in which it succeeds goes on."""
        try:
            await self.close()
        finally:
            if self._reconnection_task is not None:
                await end([self._reconnection_task])
            begun = (self._reading_task, self._flusher_task, self._ping_interval_task)  # by that attempt
            await end([task for task in begun if task is not None])
            if isinstance(self._transport, _Transport):
                self._transport.leave()
                await asyncio.sleep(0)  # the loop closes a socket in its next turn

    async def _connect_to_server(self, s: Srv) -> None:
        s.last_attempt = time.monotonic()
        transport = self._transport
        if not isinstance(transport, _Transport):
            self._transport = transport = _Transport()  # type: ignore[no-untyped-call]
        transport.leave()
        await transport.connect(s.uri, DEFAULT_BUFFER_SIZE, self.options["connect_timeout"])

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if initial_connection and self.options.get("tls") is not None and not info.get("tls_required"):
            raise NoTlsError
        await super()._process_info(info, initial_connection)

    async def _process_connect_init(self) -> None:
        """The server judges our certificate after the handshake: all that is seen of it is an end, in several ways."""
        try:
            await super()._process_connect_init()
        except ssl.SSLCertVerificationError:
            raise
        except (ConnectionError, ssl.SSLError) as error:
            if self._server_info.get("tls_verify"):
                raise CertificateRefusedError from error
            raise
        if not self.is_connected and self._server_info.get("tls_verify"):
            raise CertificateRefusedError


class _Transport(TcpTransport):
    _left: asyncio.StreamWriter | None = None  # whose end was waited for

    def write(self, payload: bytes) -> None:
        self.writelines([payload])

    def writelines(self, payload: list[bytes]) -> None:
        try:
            super().writelines(payload)  # type: ignore[no-untyped-call]
        except RuntimeError as error:  # uvloop's word for a connection that has ended; the library knows OSError
            raise ConnectionResetError(str(error)) from None

    def leave(self) -> None:
        """Ends an attempt that came to nothing, which the library forgets when it begins the next one."""
        if self._io_writer is not None:
            self._io_writer.transport.abort()

    async def wait_closed(self) -> None:
        """Once for each connection: whoever is cancelled here cancels what everybody else would wait for."""
        writer = self._io_writer
        if writer is None or writer is self._left:
            return
        self._left = writer
        try:
            async with asyncio.timeout(GOODBYE_S):
                await writer.wait_closed()
        except TimeoutError:
            pass
        finally:
            writer.transport.abort()
