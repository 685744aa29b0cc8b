"""``$SYS`` topics: figures of the node as retained messages, under the names that users of MQTT brokers know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from brookmq import __version__
from brookmq.base.message import Message
from brookmq.broker.broker import Broker

if TYPE_CHECKING:
    from brookmq.node.view import View

PREFIX = "$SYS/broker/"


class SysTopics:
    def __init__(self, broker: Broker, view: View) -> None:
        self.broker = broker
        self.view = view
        self._next = 0.0

    def tick(self, now: float, interval: float) -> None:
        if now < self._next:
            return
        self._next = now + interval
        retain = self.broker.settings.retain_available
        for name, value in self.values().items():
            message = Message((PREFIX + name).encode(), value.encode(), 0, retain, published_at=now)
            self.broker.publish(message, None, now)

    def values(self) -> Mapping[str, str]:
        info = self.view.info()
        counters = self.view.counters()
        gauges = self.view.gauges()
        dropped = sum(value for name, value in counters.items() if name.startswith("dropped_"))
        connected = int(gauges["connections"])
        sessions = int(gauges["sessions"])
        return {
            "version": f"BrookMQ version {__version__}",
            "uptime": f"{int(info.uptime_s)} seconds",
            "clients/connected": str(connected),
            "clients/active": str(connected),
            "clients/disconnected": str(sessions - connected),
            "clients/inactive": str(sessions - connected),
            "clients/total": str(sessions),
            "clients/maximum": str(int(gauges["connections_most"])),
            "clients/expired": str(counters["sessions_ended"]),
            "messages/received": str(counters["packets_received"] + counters["publishes_received"]),
            "messages/sent": str(counters["messages_sent"]),
            "messages/stored": str(int(gauges["retained"])),
            "store/messages/count": str(int(gauges["retained"])),
            "store/messages/bytes": str(int(gauges["retained_bytes"])),
            "publish/messages/received": str(counters["publishes_received"]),
            "publish/messages/sent": str(counters["messages_sent"]),
            "publish/messages/dropped": str(dropped),
            "bytes/received": str(counters["bytes_received"]),
            "bytes/sent": str(counters["bytes_sent"]),
            "retained messages/count": str(int(gauges["retained"])),
            "subscriptions/count": str(int(gauges["subscriptions"])),
            "shared_subscriptions/count": str(int(gauges["shared_subscriptions"])),
        }
