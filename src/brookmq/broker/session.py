"""What the broker keeps of a client: subscriptions, the QoS state, and how far it has got.

A *transient* session (expiry 0) ends with its connection, so it keeps no copy of what it sent; what its window does not
take waits in a bounded queue.

A *kept* session outlives its connection, and the node. It has no queue: what it gets at QoS 1 and 2 comes out of the
journal. It is *live* when everything that the journal has was handed to it, and then gets what is stored as it is
stored. Else it is *behind*: ``cursors`` has, for each shard, the first offset that it has not got, and ``catch_up``
reads on from there whenever the window and the outlet take something. A client that is slow or away is behind; nothing
is dropped and nothing is buffered for it.

    journal ──(live, or read from the cursors)──► window (packet id → position) ──(PUBACK / PUBREC)──► done

A session with a subscription at QoS 2 is *strict*: a message goes out when the session log has its packet id and
position, so that after any crash it goes out again under the same id, and not a second time. Others are written lazily.
"""

from __future__ import annotations

from collections import deque

from brookmq.base.message import Message
from brookmq.broker.client_state import ClientState
from brookmq.broker.encoding import encode_delivery
from brookmq.broker.inflight import NOWHERE, PUBCOMP_DUE, InFlight, Window
from brookmq.broker.outlet import MESSAGE_WORTH
from brookmq.broker.publication import Delivery, Publication
from brookmq.mqtt.kernel import acks

PUBREL_HEAD = 0x62


class Session(ClientState):
    """The state of a client, with what sends to it. See ``ClientState`` for its invariants."""

    # -- runs: the fast way

    def send_run(self, publication: Publication, qos: int, first: int, count: int, group: object) -> None:
        """Messages ``first`` to ``first + count`` of a run at QoS 1 or 2 to a transient session. The caller has checked
        ``plain``."""
        outlet = self.outlet
        run = publication.run
        if outlet is not None and not self.queue and outlet.size <= outlet.high:
            window = self.window
            if window is None:
                window = self.window = Window(self.window_limit)
            room = window.limit - window.count
            fit = min(count, room)
            if fit > 0:
                ids = window.take(fit, qos)
                outlet.put(run.with_ids(self.version5, qos, ids, first))
                self.counters.messages_sent += fit
                self.sent_count += fit
                if group is not None:
                    self._hold(publication, qos, first, ids, group)
                if fit == count:
                    return
                first += fit
                count -= fit
        for index in range(first, first + count):
            self.enqueue(Delivery(publication.message(index), qos, False, b"", group))

    def _hold(self, publication: Publication, qos: int, first: int, ids: bytes, group: object) -> None:
        held = self.held
        if held is None:
            held = self.held = {}
        for i in range(0, len(ids), 2):
            held[ids[i] << 8 | ids[i + 1]] = Delivery(publication.message(first + i // 2), qos, False, b"", group)

    def take_run(self, publication: Publication, qos: int, first: int, count: int, position: int, group: object) -> int:
        """Messages of a run that the journal has, ``first`` at ``position``. Returns how many were taken: all, unless
        the window or the outlet has no room."""
        outlet = self.outlet
        if outlet is None or self.to_resend is not None or outlet.size > outlet.high:
            return 0
        window = self.window
        if window is None:
            window = self.window = Window(self.window_limit)
        fit = min(count, window.limit - window.count)
        if fit <= 0:
            return 0
        ids = window.take(fit, qos)
        window.place(ids, position)
        if group is not None:
            self._came_by(ids, group)
        packets = publication.run.with_ids(self.version5, qos, ids, first)
        self.counters.messages_sent += fit
        self.sent_count += fit
        keeper = self.keeper
        if keeper is not None:
            if not self.moved:
                keeper.note_moved(self)
            if self.strict:
                keeper.sent(self, ids, qos, position, packets)
                return fit
        outlet.put(packets)
        return fit

    def _came_by(self, ids: bytes, group: object) -> None:
        if self.via is None:
            self.via = {}
        for i in range(0, len(ids), 2):
            self.via[ids[i] << 8 | ids[i + 1]] = group

    # -- single messages

    def take_message(
        self,
        message: Message,
        qos: int,
        retain: bool,
        identifiers: bytes,
        group: object,
        position: int,
        dup: bool,
        now: float,
    ) -> bool:
        """One message that the journal has at ``position``; False when the window or the outlet has no room for it."""
        outlet = self.outlet
        if outlet is None or self.to_resend is not None or outlet.size > outlet.high:
            return False
        window = self.window
        if window is None:
            window = self.window = Window(self.window_limit)
        if window.count >= window.limit:
            return False
        ids = window.take(1, qos)
        window.place(ids, position)
        if group is not None:
            self._came_by(ids, group)
        if self.keeper is not None and not self.moved:
            self.keeper.note_moved(self)
        delivery = Delivery(message, qos, retain, identifiers, group, ids[0] << 8 | ids[1])
        delivery.dup = dup
        if self.intercept is not None:
            self.intercept(self, delivery, now)  # its place in the window keeps it meanwhile
        else:
            self.send_taken(delivery, now)
        return True

    def send_taken(self, delivery: Delivery, now: float) -> None:
        """Write a message that has its packet id. One that is expired or too large for the client gives it back."""
        window, outlet = self.window, self.outlet
        packet_id = delivery.packet_id
        if window is None or outlet is None or window.state(packet_id) != delivery.qos:
            return  # the connection has ended while plugins were asked: it goes out to the next
        ids = packet_id.to_bytes(2, "big")
        packet = encode_delivery(self, delivery, now)
        if packet is None:
            self.finish_taken(ids, delivery.qos)
        elif self.strict and self.keeper is not None and not delivery.again:
            position = NOWHERE if window.positions is None else window.positions[packet_id - 1]
            self.keeper.sent(self, ids, delivery.qos, position, packet)
        else:
            outlet.put(packet)

    def send(self, message: Message, qos: int, retain: bool, identifiers: bytes, group: object, now: float) -> None:
        """One message that is not in the journal, at the QoS that its subscription allows."""
        if self.intercept is not None:
            self.intercept(self, Delivery(message, qos, retain, identifiers, group), now)
        else:
            self.send_judged(message, qos, retain, identifiers, group, now)

    def send_judged(
        self, message: Message, qos: int, retain: bool, identifiers: bytes, group: object, now: float
    ) -> None:
        """The same, after the deliver hooks have had their say."""
        outlet = self.outlet
        delivery = Delivery(message, qos, retain, identifiers, group)
        if qos == 0:
            if outlet is None:
                self.counters.dropped_offline_qos0 += 1
            elif outlet.overflows():
                self.counters.dropped_output_full += 1
                self.dropped_count += 1
            else:
                self._write(delivery, now)
            return
        if outlet is None or self.queue or self.to_resend is not None or not self._deliver(delivery, now):
            self.enqueue(delivery)

    def _deliver(self, delivery: Delivery, now: float) -> bool:
        """Send one now; False when the window or the outlet has no room."""
        outlet = self.outlet
        if outlet is None or outlet.size > outlet.high:
            return False
        qos = delivery.qos
        if qos == 0:
            self._write(delivery, now)
            return True
        window = self.window
        if window is None:
            window = self.window = Window(self.window_limit)
        if window.count >= window.limit:
            return False
        ids = window.take(1, qos)
        delivery.packet_id = ids[0] << 8 | ids[1]
        if self.kept or delivery.group is not None:
            if self.held is None:
                self.held = {}
            self.held[delivery.packet_id] = delivery
            if self.kept:
                window.place(ids, NOWHERE)
        if self.kept and self.strict:
            self.send_taken(delivery, now)
        elif not self._write(delivery, now):
            self.finish_taken(ids, qos)
        elif self.keeper is not None and not self.moved:
            self.keeper.note_moved(self)
        return True

    def _write(self, delivery: Delivery, now: float) -> bool:
        """Encode for this client and put into its outlet; False when the message is expired or too large for it."""
        outlet = self.outlet
        if outlet is None:
            return False
        packet = encode_delivery(self, delivery, now)
        if packet is None:
            return False
        outlet.put(packet)
        return True

    # -- what had no room

    def pump(self, now: float) -> None:
        """Send what the window and the outlet take: first what has to be sent again, then from the queue, then from the
        journal."""
        if self.to_resend is not None and not self._resend(now):
            return
        queue = self.queue
        while queue:
            delivery = queue[0]
            if not self._deliver(delivery, now):
                return
            queue.popleft()
            self.queue_bytes -= delivery.message.size()
            if self.outlet is not None:
                self.outlet.credit += MESSAGE_WORTH
        if queue is not None:
            self.queue = None
            if self.outlet is not None:
                self.outlet.relieve()
        if not self.live and self.keeper is not None and not self.loading:
            self.keeper.catch_up(self, now)
        if self.sharing is not None:
            for reader in self.sharing:
                reader.pump()

    def resend(self) -> None:
        """The client is back: everything unacknowledged goes out again, in its order, before anything new.
        [MQTT-4.4.0-1]"""
        entries = [] if self.window is None else self.window.in_flight()
        self.to_resend = deque(entries) if entries else None

    def _resend(self, now: float) -> bool:
        """As many as the client's receive maximum allows; True when all are out. DUP is set, PUBREL goes where PUBREC
        had come. [MQTT-3.3.1-1, MQTT-4.6.0-1, MQTT-3.3.4-9]"""
        window, waiting, outlet, keeper = self.window, self.to_resend, self.outlet, self.keeper
        if window is None or waiting is None or outlet is None or keeper is None:
            self.to_resend = None
            return True
        while waiting:
            if window.count - len(waiting) >= window.limit or outlet.size > outlet.high or self.loading:
                return False
            entry = waiting[0]
            ids = entry.packet_id.to_bytes(2, "big")
            if window.state(entry.packet_id) != entry.state:
                waiting.popleft()  # it was acknowledged meanwhile
            elif entry.state == PUBCOMP_DUE:
                waiting.popleft()
                outlet.put(acks(PUBREL_HEAD, ids))
            else:
                delivery = self._held_delivery(entry)
                if delivery is None and self._is_loading():
                    return False  # it goes on when the store has answered
                if delivery is None:
                    waiting.popleft()
                    self.finish_taken(ids, entry.state)
                    continue
                waiting.popleft()
                delivery.dup = delivery.again = True
                self.counters.messages_resent += 1
                if self.intercept is not None and entry.position >= 0:
                    self.intercept(self, delivery, now)
                else:
                    self.send_taken(delivery, now)
        self.to_resend = None
        return True

    def _is_loading(self) -> bool:
        return self.loading

    def _held_delivery(self, entry: InFlight) -> Delivery | None:
        if entry.position < 0:
            return None if self.held is None else self.held.get(entry.packet_id)
        return None if self.keeper is None else self.keeper.delivery_at(self, entry)
