"""The broker takes what its store has, once, after the store was opened.

Before anything else the end of the journal is looked through, from the last watermark of the session log on: QoS 2
packet ids that publishers have open, wills that went out, rows of queries. Then the broker has the tables, and loads
them beside its work; a client that connects waits for its own part only.
"""

from __future__ import annotations

import time

from brookmq.broker.broker import Broker
from brookmq.broker.sinks import Sinks
from brookmq.store.journal.journal import Journal
from brookmq.store.table.interface import Table


async def recover(broker: Broker, sinks: Sinks, journal: Journal, sessions: Table, retained: Table) -> None:
    restoring = broker.restoring
    for shard, watermark in enumerate(restoring.watermark(sessions.meta_state())):
        offset = watermark
        while batches := await journal.scan(shard, offset):
            for batch in batches:
                restoring.look_through(shard, batch.groups)
                sinks.look_through(batch.groups)
            offset = batches[-1].end
    journal.on_stored = broker.journaling.stored
    broker.attach(journal, sessions, retained, time.time())
