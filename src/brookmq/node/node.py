"""One node: what runs in its process, from the first socket to the last flush.

Start: sockets are bound before anything else, so that a port in use is an error and not a surprise; plugins run before
the first client can come; the store comes up beside HTTP; then listeners open, and the ready line is printed. A store
that needs longer is not waited for: what needs it waits.
Stop: no new connections, every client is told (0x8B), HTTP last of all that is seen from outside, then the store.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from typing import TYPE_CHECKING

from brookmq.access.plugins import Plugins
from brookmq.base.alarms import Alarms
from brookmq.base.config import Config, unprotected
from brookmq.base.config.written import written
from brookmq.base.message import Message
from brookmq.broker.delivering import DeliverHooks
from brookmq.broker.sinks import Sinks
from brookmq.edge.hub import Hub
from brookmq.edge.listeners import Listeners
from brookmq.edge.open_files import OpenFiles, raise_open_files
from brookmq.node.backup import Backup, Kept
from brookmq.node.event_messages import EventMessages
from brookmq.node.kept_sessions import KeptSessions
from brookmq.node.opening import Opened
from brookmq.node.pipeline_health import PipelineHealth
from brookmq.node.pipeline_process import PipelineProcess, pipeline_folder
from brookmq.node.readers import DeclaredReaders
from brookmq.node.recovering import recover
from brookmq.node.retention import Retention
from brookmq.node.rule_book import RuleBook
from brookmq.node.rule_checker import RuleChecker
from brookmq.node.sink import Sink
from brookmq.node.storage import Storage
from brookmq.node.sys_topics import SysTopics
from brookmq.node.view import View
from brookmq.node.wiring import broker_of
from brookmq.store.folder import DataFolder
from brookmq.store.table.states import KeyedStates

if TYPE_CHECKING:
    from brookmq.ops.server import HttpServer

TICK_SECONDS = 0.1
# A collection costs some 0.4 µs for each object that it looks at, and the loop stands still meanwhile. So it looks at
# few: a thousand new ones, or the six thousand of the last few collections, 2 ms. That is no more work in all,
# since what survives is looked at once in each generation. A full collection over a large table, which stalls the loop
# whatever its thresholds are, is rare; and what sessions bring when they are loaded is frozen on the way.
GC_THRESHOLDS = (1_000, 5, 20_000)

log = logging.getLogger("brookmq.node")


class Node:
    def __init__(self, config: Config, folder: DataFolder | None, loop: asyncio.AbstractEventLoop) -> None:
        self.config = config
        self.loop = loop
        self.alarms = Alarms()
        self.started_at = time.time()
        self.open_files: OpenFiles = raise_open_files(config.edge.open_files or None)
        self.broker = broker_of(config, self.alarms, loop)
        self.broker.keeper.on_lost = self._lost_to_retention
        self.sinks = Sinks(self.broker.keeper, self.broker.publish_patiently)
        self.sink = Sink(self.broker, self.sinks, float(config.store.wait))
        self.storage = Storage(config, folder, self.alarms, self._kept, self._deposed)
        self.hub = Hub(self.broker, loop)
        self.listeners = Listeners(
            config.listeners,
            self.hub.make_connection,
            self.broker.counters,
            loop,
            connections_fit=self.open_files.connections,
            connect_seconds=float(config.mqtt.connect_timeout),
        )
        self.plugins = Plugins(
            config.node.name,
            self.broker.hooks,
            self.alarms,
            self._publish,
            enabled=config.plugins.enabled,
            required=config.plugins.required,
            settings=config.plugins.settings,
        )
        self.checker = RuleChecker(pipeline_folder(config) / "checker", float(config.pipeline.checker_idle))
        self.pipeline_health = PipelineHealth()
        self._pipeline = PipelineProcess(config, self.alarms, self.pipeline_health)
        self.view = View(self)
        self.http_address = ""
        self.loop_lag = 0.0
        self._serving = False
        self._why_not = "the node is starting"
        self._http: HttpServer | None = None
        self._sessions: KeptSessions | None = None  # once what is kept is open
        self._retention: Retention | None = None  # likewise
        self._leaving: asyncio.Task[None] | None = None  # of the clients of kept sessions, to another node
        self._ticking: asyncio.TimerHandle | None = None
        self._tick_due = loop.time()
        self._events = EventMessages(self.broker, config.node.name, loop.call_soon)
        self._sys_topics = SysTopics(self.broker, self.view) if config.sys_topics.enable else None

    async def start(self) -> None:
        self.listeners.bind()
        try:
            await self.plugins.start()
            for error in unprotected(self.config, authenticator=bool(self.broker.hooks.authenticate)):
                raise error
            self.broker.intercept = hooks = DeliverHooks(self.broker.hooks, self.hub.run, self.broker.counters)
            self.broker.keeper.replays.plugins_busy = hooks.busy
            self._tick()
            self.storage.begin()
            if self.config.http.enable:
                await self._start_http()
            await self.storage.wait()
            await self.listeners.start()
        except BaseException:
            await self.stop()
            raise
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        self._serving = True
        if self.config.pipeline.autostart:
            self._pipeline.begin(self.http_address)
        log.info("%s", self.open_files)

    async def _start_http(self) -> None:
        from brookmq.ops.server import HttpServer

        host, port = self.config.http.address
        server = HttpServer(self.view, host, port)
        self.http_address = await server.start()
        self._http = server

    async def stop(self) -> None:
        """Everything in order; each step has a bound."""
        self._serving = False
        self._why_not = "the node is stopping"
        self.broker.accepting = False
        self.listeners.stop_accepting()
        pipeline = self.loop.create_task(self._pipeline.stop())  # its queries tell how far they are, over HTTP
        await self.hub.close_all(float(self.config.edge.drain_time))
        self.listeners.close()
        await self.plugins.stop()
        await self.broker.hooks.stop()
        if self._ticking is not None:
            self._ticking.cancel()
        await pipeline
        await self.checker.close()
        if self._http is not None:
            await self._http.stop()
        await self.sink.close()
        await self.storage.stop()
        if self._retention is not None:  # now: what was being opened may have begun it
            await self._retention.close()

    def readiness(self) -> tuple[bool, str]:
        """Whether all clients can be served, and if not, what is missing."""
        trouble = self.storage.trouble if self._serving else self._why_not
        return not trouble, trouble

    def ready_line(self) -> str:
        addresses = "".join(f" {name}={','.join(found)}" for name, found in self.listeners.addresses().items())
        http = f" http={self.http_address}" if self.http_address else ""
        return f"brookmq ready name={self.config.node.name}{addresses}{http}"

    def reload(self) -> None:
        """Certificates again; what can't be read stays as it was."""
        errors = self.listeners.reload()
        for error in errors:
            log.error("certificates not reloaded: %s", error)
        if not errors:
            log.info("certificates reloaded")

    def _tick(self) -> None:
        began = self.loop.time()
        self.loop_lag = max(began - self._tick_due, self.loop_lag * 0.9)  # the latest peak, fading in seconds
        self._tick_due = began + TICK_SECONDS
        self._ticking = self.loop.call_at(self._tick_due, self._tick)  # first: an error below must not be the last tick
        monotonic = time.monotonic()
        now = time.time()
        self.broker.tick(now, monotonic)
        if not self.broker.keeper.complete and self.broker.keeper.table is not None:
            gc.freeze()  # sessions are being loaded by the thousand
        else:
            gc.collect(0)  # where as much is freed as is made the thresholds are not reached, and new objects collect
        self.hub.tick(monotonic)
        self._events.tick(now)
        if self._sys_topics is not None:
            self._sys_topics.tick(now, float(self.config.sys_topics.interval))

    async def _kept(self, opened: Opened) -> None:
        """What is kept is open."""
        await recover(self.broker, self.sinks, opened.journal, opened.sessions, opened.retained)
        assert self.broker.values is not None
        pipeline = KeyedStates(opened.pipeline, self.loop.call_soon)
        pipeline.begin()
        self.sinks.begin(pipeline, self.broker.restoring, time.time())
        readers = DeclaredReaders(pipeline, opened.journal, self.alarms, float(self.config.journal.readers_wait))
        self._retention = Retention(opened.journal, readers, float(self.config.journal.max_age))
        self._retention.begin()
        self.view.rule_facts.book = RuleBook(pipeline)
        self.view.pipeline_facts.declared = readers
        self.view.pipeline_facts.retention = self._retention
        self._sessions = KeptSessions(self.broker, opened.sessions)
        kept = Kept(self.broker.values, opened.sessions, self._sessions, opened.journal, pipeline)
        self.view.backup = Backup(self.config.node.name, written(self.config), kept)

    def _deposed(self) -> None:
        """Another node has what was kept here; nobody connects to it before the broker knows it."""
        if self._retention is not None:
            self._retention.end()
        if self._sessions is not None:
            self._leaving = self.loop.create_task(self._sessions.send_away())

    def _lost_to_retention(self, who: str, count: int) -> None:
        """The journal's retention was faster than a reader: never silent."""
        message = f"retention removed {count} journal messages before {who} could read them"
        log.warning("%s", message)
        self.alarms.activate("journal_retention", {"who": who, "messages": count}, message, time.time())

    async def _publish(self, message: Message) -> None:
        self.broker.publish(message, None, time.time())
