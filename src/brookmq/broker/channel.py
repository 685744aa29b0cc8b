"""One connection's protocol state: bytes come in, bytes go to the outlet, decisions go to the broker.

No socket and no clock: ``receive`` is given bytes and the time. Packets are handled strictly one after the other. A
step that has to wait (a plugin's answer, a full subscriber) *suspends* the channel: what has come meanwhile stays
unread here, the host stops reading, and ``resume`` goes on where it stopped. So the order of acknowledgements is the
order of arrival.

``_consume`` is the hot loop. It takes runs of PUBLISH packets and runs of acknowledgements as slices; every other
packet is decoded and handed to the module that handles its kind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from brookmq.base.errors import PeerError
from brookmq.broker import connecting, publishing, requests
from brookmq.broker.answering import put_settled
from brookmq.broker.channel_state import CLOSED, CONNECTED, CONNECTING, ChannelState, Obstacle
from brookmq.broker.run_taking import TAKEN, WAIT, take_acks, take_run
from brookmq.mqtt import reasons
from brookmq.mqtt.codec import PINGRESP_BYTES
from brookmq.mqtt.kernel import ack_ids, frame

SINGLES_MAX = 200  # packets handled one by one before others get their turn: 1 to 3 ms
UNSETTLED_BYTES_MAX = 1 << 20  # of messages of one connection that wait for the store; then it is not read from


class Channel(ChannelState):
    """The state of a connection, with what reads. See ``ChannelState`` for its invariants."""

    # -- bytes in

    def receive(self, data: bytes, monotonic: float) -> None:
        """Bytes have come. Never raises for anything that a peer can send."""
        if self.state == CLOSED:
            return
        self.counters.bytes_received += len(data)
        self.bytes_received += len(data)
        if self.partial is not None:
            self.partial += data
            if self.suspended or len(self.partial) < self.need:
                return
            data = bytes(self.partial)
            self.partial = None
        elif self.suspended:
            self.partial = bytearray(data)
            return
        connected = self.state == CONNECTED
        try:
            self._consume(data, monotonic + self.broker.wall)
        except PeerError as error:
            self.fail(error)
        if connected and self._unread() < len(data):
            self.last_seen = monotonic  # a whole packet at least: bytes alone don't keep alive [MQTT-3.1.2-22]

    def _consume(self, data: bytes, now: float) -> None:
        size = len(data)
        pos = 0
        singly_until = 0
        singles = 0
        while pos < size:
            if self.outlet.size > self.outlet.limit:  # it does not read our answers, so we do not read its requests
                self.wait_for(self.outlet)
                self._keep(data, pos)
                return
            if self.unsettled_bytes > UNSETTLED_BYTES_MAX:
                self.stalled = True
                self.hold()
                self._keep(data, pos)
                return
            if self.turn.tables_full and self._waits_for_table():
                self._keep(data, pos)
                return
            head = data[pos]
            kind = head >> 4
            if self.state == CONNECTED:
                if kind == 3:
                    if pos >= singly_until and not self.singly:
                        run = self.dispatcher.publication.run
                        end = run.scan(data, pos, self.version5, self.settings.packet_size_max)
                        if end > 0:
                            taken = take_run(self, now)
                            if taken == TAKEN:
                                self.counters.packets_received += run.count
                                pos = end
                                continue
                            if taken == WAIT:
                                self._wait_for_obstacle()
                                self._keep(data, pos)
                                return
                            singly_until = end
                elif 4 <= kind <= 7 and pos >= singly_until:
                    ids = ack_ids(data, pos)
                    if ids:
                        if take_acks(self, head, ids, now):
                            self.counters.packets_received += len(ids) // 2
                            pos += 2 * len(ids)
                            continue
                        singly_until = pos + 2 * len(ids)  # not looked at as a run again: that would be quadratic
            body, end = frame(data, pos)
            if end < 0:
                raise PeerError(reasons.MALFORMED_PACKET, "the length of a packet has more than four bytes")
            if end - pos > self.settings.packet_size_max:
                self.counters.packets_too_large += 1
                raise PeerError(reasons.PACKET_TOO_LARGE, f"a packet of {end - pos} bytes is over the limit")
            if end == 0 or end > size:
                self._check_beginning(head)
                self.partial = bytearray(data[pos:]) if pos else bytearray(data)
                self.need = end - pos if end else len(self.partial) + 1
                return
            self._take_packet(head, data[body:end], now)
            pos = end
            singles += 1
            if self.state == CLOSED:
                return
            if singles == SINGLES_MAX and not self.suspended and pos < size:
                self._let_others(data, pos)
                return
            if self.suspended:
                self._keep(data, pos)
                return

    def _let_others(self, data: bytes, pos: int) -> None:
        """A peer that sends packet after packet of the slow kind goes on in the next turn of the loop."""
        self._keep(data, pos)
        self.hold()
        self.turn.call_soon(self.resume)

    def _unread(self) -> int:
        return 0 if self.partial is None else len(self.partial)

    def _keep(self, data: bytes, pos: int) -> None:
        """The channel is suspended: what is not handled yet waits here; it is bounded, since nothing more is read."""
        rest = bytearray(data[pos:])
        if self.partial is not None:
            rest += self.partial
        self.partial = rest
        self.need = 0

    def _check_beginning(self, head: int) -> None:
        """Before CONNECT nothing else is waited for. [MQTT-3.1.0-1]"""
        if self.state == CONNECTING and head >> 4 != 1 and self.authentication is None:
            raise PeerError(reasons.PROTOCOL_ERROR, "the first packet is not CONNECT")

    def _take_packet(self, head: int, body: bytes, now: float) -> None:
        self.counters.packets_received += 1
        if self.state != CONNECTED:
            connecting.take_packet(self, head, body, now)
            return
        kind = head >> 4
        if kind == 3:
            publishing.take_publish(self, head, body, now)
        elif head == 0xC0 and not body:
            self.outlet.put(PINGRESP_BYTES)
        else:
            requests.take_packet(self, head, body, now)

    # -- waiting

    def wait_for(self, obstacle: Obstacle) -> None:
        """Go on when what is full has room, or, a subscriber, has used up its patience."""
        self.counters.publishers_paused += 1
        self.hold()
        obstacle.wait(self.resume)

    def _wait_for_obstacle(self) -> None:
        obstacle = self.obstacle
        self.obstacle = None
        assert obstacle is not None
        self.wait_for(obstacle)

    def _waits_for_table(self) -> bool:
        """Whatever a kept session does may be a change for the table of sessions, which has too many already."""
        session, table = self.session, self.broker.keeper.table
        if session is None or not session.kept or table is None or not table.full:
            return False
        self.wait_for(table)
        return True

    def suspend(self, awaitable: Awaitable[Any], then: Callable[[Any], None]) -> None:
        """Wait for an answer from outside; ``then`` gets it, unless the connection has ended meanwhile."""
        self.hold()

        def done(answer: Any) -> None:
            def step() -> None:
                if isinstance(answer, BaseException):
                    raise PeerError(reasons.IMPLEMENTATION_SPECIFIC_ERROR, "an internal step failed") from answer
                then(answer)

            self.go_on(step)

        self.host.run(awaitable, done)

    def hold(self) -> None:
        """Handle nothing more until ``go_on`` or ``resume``."""
        self.suspended = True
        self.host.pause_reading()

    def go_on(self, step: Callable[[], None]) -> None:
        """What was waited for is there: take the next step, then handle what has come meanwhile. Does nothing when the
        connection has ended."""
        if self.state == CLOSED:
            return
        self.suspended = False
        try:
            step()
        except PeerError as error:
            self.fail(error)
        if not self.suspended:  # the next step may have to wait as well
            self.resume()

    def resume(self) -> None:
        """The step that was waited for is done: handle what has come meanwhile, and read on."""
        if self.state == CLOSED:
            return
        self.suspended = False
        self.heard(self.broker.now)
        data = self.partial
        self.partial = None
        if data:
            try:
                self._consume(bytes(data), self.broker.now)
            except PeerError as error:
                self.fail(error)
        if not self.suspended and self.state != CLOSED:
            self.host.resume_reading()

    def settled(self) -> None:
        """Something that was waited for is stored, or could not be."""
        if put_settled(self) and self.stalled:
            self.stalled = False
            self.turn.call_soon(self.resume)

    def drained(self) -> None:
        """The outlet is empty again: the session may have more."""
        session = self.session
        if session is not None and session.channel is self:
            session.pump(self.broker.now)
