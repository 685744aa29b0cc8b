"""Runs a node until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path

import uvloop

from brookmq.base.config import Config
from brookmq.node.engine import open_folder
from brookmq.node.node import Node
from brookmq.store.folder import DataFolder

log = logging.getLogger("brookmq.node")


def run(config: Config) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. Raises OperationError when it can't start.

    The data folder comes first: two nodes on it would write into the same files.
    """
    folder = open_folder(Path(config.node.data_dir))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(config, folder))


async def _serve(config: Config, folder: DataFolder | None) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    node = Node(config, folder, loop)
    loop.add_signal_handler(signal.SIGHUP, node.reload)
    await node.start()
    print(node.ready_line(), flush=True)
    await stop.wait()
    log.info("stopping")
    await node.stop()
    return 0
