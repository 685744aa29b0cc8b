"""A core's store without a broker: a member of the cluster that keeps copies and serves no clients.

One broker appends to a log. Until brokers share the logs of a cluster among each other, one core runs a node and the
others run this.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from pathlib import Path

import uvloop

from brookmq.base.config import Config
from brookmq.base.errors import OperationError
from brookmq.store.diagnosis import Diagnosis
from brookmq.store.folder import DataFolder
from brookmq.store.membership import read_membership
from brookmq.store.server import StoreOptions, StoreServer

log = logging.getLogger("brookmq.node")


def run(config: Config, as_json: bool) -> int:
    """Until SIGTERM or SIGINT; the exit code. OperationError when it can't start."""
    folder = DataFolder.open(Path(config.node.data_dir))
    try:
        if read_membership(folder) is None:
            raise OperationError(
                f"{folder.path} is no core of a cluster: run `brookmq cluster init` or `brookmq cluster join` first"
            )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_serve(config, folder, as_json))
    finally:
        folder.close()


async def _serve(config: Config, folder: DataFolder, as_json: bool) -> int:
    loop = asyncio.get_running_loop()
    asked, ready = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)

    def down(diagnosis: Diagnosis) -> None:
        log.warning("the store does not serve: %s", diagnosis.text)

    store = StoreServer(folder, StoreOptions(config.node.name, config.store.binary or None), ready.set, down)
    try:
        if not await store.start():
            log.warning("%s", store.reason)
        waiting = [loop.create_task(event.wait()) for event in (asked, ready)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if ready.is_set():
            print(_ready_line(config.node.name, store, as_json), flush=True)
        await asked.wait()
        for task in waiting:
            task.cancel()
    finally:
        await store.stop()
    return 0


def _ready_line(name: str, store: StoreServer, as_json: bool) -> str:
    address = store.addresses[0].rpartition("/")[2]
    if as_json:
        return json.dumps({"ready": True, "name": name, "store": address, "pid": store.pid})
    return f"brookmq store ready name={name} store={address}"
