"""``$SYS`` topics: figures of the node as retained messages, under the names that users of MQTT brokers know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from brookmq import __version__
from brookmq.base.errors import PeerError
from brookmq.base.message import Message
from brookmq.broker.broker import Broker
from brookmq.node.load_averages import LoadAverages

if TYPE_CHECKING:
    from brookmq.node.view import View

PREFIX = "$SYS/broker/"


class SysTopics:
    """Publishes all of them once per interval, from the node's tick."""

    def __init__(self, broker: Broker, view: View) -> None:
        self.broker = broker
        self.view = view
        self._next = 0.0
        self._load: LoadAverages | None = None  # from the first round on

    def tick(self, now: float, interval: float) -> None:
        if now < self._next:
            return
        self._next = now + interval
        retain = self.broker.settings.retain_available
        for name, value in self.values(now).items():
            message = Message((PREFIX + name).encode(), value.encode(), 0, retain, published_at=now)
            try:
                self.broker.publish(message, None, now)
            except PeerError:  # another node has the store: it has these topics now, too
                return

    def values(self, now: float) -> Mapping[str, str]:
        """Every topic behind ``$SYS/broker/`` with its payload."""
        info = self.view.info()
        counters = self.view.counters()
        gauges = self.view.gauges()
        connected = int(gauges["connections"])
        sessions = int(gauges["sessions"])
        retained = str(int(gauges["retained"]))
        totals = _totals(counters)
        if self._load is None:
            self._load = LoadAverages(now - max(info.uptime_s, 0.001))
        figures = {
            "version": f"BrookMQ version {__version__}",
            "uptime": f"{int(info.uptime_s)} seconds",
            "clients/connected": str(connected),
            "clients/active": str(connected),
            "clients/disconnected": str(sessions - connected),
            "clients/inactive": str(sessions - connected),
            "clients/total": str(sessions),
            "clients/maximum": str(int(gauges["connections_most"])),
            "messages/received": str(totals["messages/received"]),
            "messages/sent": str(totals["messages/sent"]),
            "messages/stored": retained,
            "store/messages/count": retained,
            "store/messages/bytes": str(int(gauges["retained_bytes"])),
            "retained messages/count": retained,
            "publish/messages/received": str(totals["publish/received"]),
            "publish/messages/sent": str(totals["publish/sent"]),
            "publish/messages/dropped": str(totals["publish/dropped"]),
            "bytes/received": str(totals["bytes/received"]),
            "bytes/sent": str(totals["bytes/sent"]),
            "subscriptions/count": str(int(gauges["subscriptions"])),
            "shared_subscriptions/count": str(int(gauges["shared_subscriptions"])),
        }
        for name, average in self._load.update(totals, now).items():
            figures[f"load/{name}"] = f"{average:.2f}"
        return figures


def _totals(counters: Mapping[str, int]) -> dict[str, int]:
    """What load averages are made of, by the name that each has under ``load/``."""
    return {
        "messages/received": counters["packets_received"],
        "messages/sent": counters["messages_sent"],
        "publish/received": counters["publishes_received"],
        "publish/sent": counters["messages_sent"],
        "publish/dropped": sum(value for name, value in counters.items() if name.startswith("dropped_")),
        "bytes/received": counters["bytes_received"],
        "bytes/sent": counters["bytes_sent"],
        "connections": counters["connects_accepted"] + counters["connects_refused"],
        "sockets": counters["connections_opened"],
    }
