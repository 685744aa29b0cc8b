"""All listeners of a node: bound together, so that a node either listens everywhere it should or does not start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

from brookmq.base.config.listeners import Listener as ListenerConfig
from brookmq.base.counters import Counters
from brookmq.base.errors import ConfigError
from brookmq.edge.context import ListenerContext
from brookmq.edge.limits import Capacity
from brookmq.edge.listener import Connection, Listener

# What the ready line calls each type of listener.
READY_NAMES = {"tcp": "mqtt", "tls": "tls", "ws": "ws", "wss": "wss", "unix": "unix"}


class Listeners:
    """``connections_fit``: how many connections the open files allow; ``connect_seconds``: the time to a CONNECT."""

    def __init__(
        self,
        configs: Mapping[str, ListenerConfig],
        make_connection: Callable[[ListenerContext], Connection],
        counters: Counters,
        loop: asyncio.AbstractEventLoop,
        *,
        connections_fit: int,
        connect_seconds: float,
    ) -> None:
        self.capacity = Capacity(connections_fit)
        self._listeners = {
            name: Listener(name, config, make_connection, counters, self.capacity, connect_seconds, loop)
            for name, config in configs.items()
            if config.enable
        }

    def __iter__(self) -> Iterator[Listener]:
        return iter(self._listeners.values())

    def bind(self) -> None:
        """Bind and listen everywhere; raises ConfigError (with the key) with nothing left bound."""
        try:
            for listener in self:
                listener.bind()
        except ConfigError:
            self.close()
            raise

    async def start(self) -> None:
        """Accept from now on."""
        for listener in self:
            await listener.start()

    def addresses(self) -> dict[str, list[str]]:
        """By the names of the ready line, with the ports that 0 became: ``{"mqtt": ["127.0.0.1:1883"]}``."""
        found: dict[str, list[str]] = {}
        for listener in self:
            found.setdefault(READY_NAMES[listener.context.kind], []).extend(listener.addresses)
        return found

    def stop_accepting(self) -> None:
        for listener in self:
            listener.stop_accepting()

    def close(self) -> None:
        """Stop accepting and end handshakes. MQTT connections are closed by whoever made them."""
        for listener in self:
            listener.close()

    def reload(self) -> list[ConfigError]:
        """Read all certificates again; a listener with a bad file keeps its old ones, and the error is returned."""
        errors: list[ConfigError] = []
        for listener in self:
            try:
                listener.reload()
            except ConfigError as error:
                errors.append(error)
        return errors
