"""MQTT over WebSocket (chapter 6): between a byte transport below and an MQTT connection above.

``WebSocket`` is the protocol of the transport below and the transport of the connection above. The opening handshake is
done by the Sans-I/O layer of `websockets`; after it frames are read and written here (see ``websocket_frames``). No
extension is offered, so nothing is compressed: MQTT payloads are mostly small or compressed already, and a compressor
costs memory for every connection. The Origin header is not checked: who may connect is decided at CONNECT.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol, cast

from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from brookmq.edge.websocket_frames import CLOSE_NORMAL, FrameDecoder, binary_header, close_frame, pong_frame

# [MQTT-6.0.0-3] the client offers "mqtt"; "mqttv3.1" is what clients of MQTT 3.1 offer. The first that fits is chosen.
SUBPROTOCOLS = (Subprotocol("mqtt"), Subprotocol("mqttv3.1"))
REQUEST_BYTES_MAX = 16_384  # request line and headers, cookies included
CLOSE_SECONDS = 5.0  # how long the peer has to answer our Close frame
# Below this a header and its payload are joined; above, copying would cost more than a second entry in the write.
JOIN_BYTES_MAX = 4_096
_END_OF_REQUEST = b"\r\n\r\n"

# The library reports every handshake at level info; what goes wrong is counted by the listener instead.
_library_log = logging.getLogger("brookmq.edge.websocket.handshake")
_library_log.setLevel(logging.ERROR)


class MqttConnection(Protocol):
    """What a WebSocket needs of the MQTT connection above it."""

    def connection_made(self, transport: asyncio.BaseTransport, /) -> None: ...
    def connection_lost(self, error: Exception | None, /) -> None: ...
    def feed(self, data: bytes, /) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


class WebSocket(asyncio.Protocol, asyncio.Transport):
    """One WebSocket: handshake, then bytes up and frames down.

    ``accepted`` makes the MQTT connection once the handshake is done; ``refused`` is told when it never will be, with a
    word why. Exactly one of the two is called.
    """

    __slots__ = (
        "_accepted",
        "_closing",
        "_connection",
        "_deadline",
        "_decoder",
        "_loop",
        "_path",
        "_refused",
        "_request",
        "_timer",
        "_transport",
        "_writing_paused",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        deadline: float,
        accepted: Callable[[], MqttConnection],
        refused: Callable[[str], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._path = path
        self._deadline = deadline  # time of the event loop by which the handshake must be done
        self._accepted = accepted
        self._refused: Callable[[str], None] | None = refused  # None once one of the two was called
        self._loop = loop
        self._request = b""  # what came of the HTTP request so far
        self._connection: MqttConnection | None = None
        self._decoder = FrameDecoder()
        self._closing = False  # our Close frame is sent: nothing more goes out
        self._writing_paused = False
        self._timer: asyncio.TimerHandle | None = None

    # --- the protocol of the transport below ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._timer = self._loop.call_at(self._deadline, self._handshake_took_too_long)

    def data_received(self, data: bytes) -> None:
        if self._connection is not None:
            self._frames_received(data)
        elif self._refused is not None:
            self._request_received(data)

    def eof_received(self) -> bool:
        return False  # half a WebSocket is of no use: the transport closes

    def connection_lost(self, error: Exception | None) -> None:
        self._stop_timer()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.connection_lost(error)
        elif self._refused is not None:
            self._refuse("closed during the handshake")

    def pause_writing(self) -> None:
        self._writing_paused = True
        if self._connection is not None:
            self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._writing_paused = False
        if self._connection is not None:
            self._answer_ping()
            self._connection.resume_writing()

    # --- the opening handshake ---

    def _request_received(self, data: bytes) -> None:
        self._request += data
        end = self._request.find(_END_OF_REQUEST)
        if end < 0 and len(self._request) <= REQUEST_BYTES_MAX and self._request[:1].isalpha():
            return
        head, rest = self._request[: end + 4], self._request[end + 4 :]
        self._request = b""
        answer = _handshake_answer(head if 0 <= end <= REQUEST_BYTES_MAX else b"", self._path)
        if not answer.startswith(b"HTTP/1.1 101"):
            self._answer_and_close(answer)
            return
        self._stop_timer()
        self._transport.write(answer)
        self._refused = None
        self._connection = self._accepted()
        del self._accepted, self._path  # of no use any more, and there are many connections
        self._connection.connection_made(self)
        if rest and self._connection is not None:
            self._frames_received(rest)

    def _answer_and_close(self, answer: bytes) -> None:
        self._refuse("no WebSocket handshake")
        self._transport.write(answer)
        self._transport.close()

    def _handshake_took_too_long(self) -> None:
        self._timer = None
        self._refuse("handshake timeout")
        self._transport.abort()

    def _refuse(self, why: str) -> None:
        if self._refused is not None:
            refused, self._refused = self._refused, None
            refused(why)

    # --- frames from the client ---

    def _frames_received(self, data: bytes) -> None:
        decoder = self._decoder
        payload = decoder.feed(data)
        if payload and not self._closing and self._connection is not None:
            self._connection.feed(payload)
        if decoder.ping is not None:
            self._answer_ping()
        if decoder.closing is not None:
            self._peer_closed(decoder.closing, decoder.problem)

    def _answer_ping(self) -> None:
        """Only while the peer reads: pongs for a peer that does not would pile up."""
        ping = self._decoder.ping
        if ping is not None and not self._writing_paused and not self._closing:
            self._decoder.ping = None
            self._transport.write(pong_frame(ping))

    def _peer_closed(self, code: int, problem: str) -> None:
        """The closing handshake is complete, or the peer broke the protocol: either way the transport ends."""
        if not self._closing:
            self._closing = True
            self._transport.write(close_frame(code, problem))
        self._close_transport()

    def _close_transport(self) -> None:
        """Close, and do not wait forever for a peer that does not read what is still to be written."""
        self._transport.close()
        if self._timer is None:
            self._timer = self._loop.call_later(CLOSE_SECONDS, self._transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- the transport of the connection above ---

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or not data:
            return
        if len(data) <= JOIN_BYTES_MAX:
            self._transport.write(binary_header(len(data)) + data)
        else:
            self._transport.write(binary_header(len(data)))
            self._transport.write(data)

    def close(self) -> None:
        """Send a Close frame and wait a little for the peer's; the transport ends then."""
        if self._closing or self._transport.is_closing():
            return
        self._closing = True
        self._transport.write(close_frame(CLOSE_NORMAL))
        self._transport.resume_reading()  # or the peer's Close frame would never be seen
        if self._timer is None:
            self._timer = self._loop.call_later(CLOSE_SECONDS, self._transport.abort)

    def abort(self) -> None:
        self._closing = True
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    def pause_reading(self) -> None:
        if not self._closing:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self._closing:
            self._transport.resume_reading()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)


def _handshake_answer(head: bytes, path: str) -> bytes:
    """The HTTP answer to a complete request head (empty: what came is none); status 101 opens the WebSocket."""
    handshake = ServerProtocol(subprotocols=SUBPROTOCOLS, logger=_library_log)
    handshake.receive_data(head)
    requests = handshake.events_received()
    if requests:
        request = cast("Request", requests[0])
        if request.path.partition("?")[0] != path:
            return handshake.reject(404, f"MQTT over WebSocket is at {path}.\n").serialize()
        # [MQTT-6.0.0-4] the chosen subprotocol is in the answer; without a common one the answer is 400.
        return handshake.accept(request).serialize()
    answer = b"".join(handshake.data_to_send())  # a head that is too large is answered by the library
    return answer or handshake.reject(400, "MQTT over WebSocket begins with an HTTP request.\n").serialize()
