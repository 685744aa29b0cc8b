"""A process that has no open files left: the loop does not spin, and the node serves again when there are some."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# In a process of its own, since the limit holds for all of it. It opens files until none is left, lets clients come for
# half a second, gives the files back, and lets a client in.
PROGRAM = """
import asyncio, json, os, resource, socket, sys, time
import uvloop
from brookmq.base.config.listeners import Listener
from tests.edge.echo import EchoServer, until, within

proxied = sys.argv[1] == "proxied"
resource.setrlimit(resource.RLIMIT_NOFILE, (120, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

async def main():
    async with EchoServer({"one": Listener(bind="127.0.0.1:0", proxy_protocol=proxied)}) as server:
        clients = [socket.socket() for _ in range(5)]
        held = []
        try:
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        for client in clients:
            client.connect(server.address())
        busy = time.process_time()
        await asyncio.sleep(0.5)
        busy = time.process_time() - busy
        for file in held:
            os.close(file)
        late = socket.create_connection(server.address())
        late.sendall((b"PROXY UNKNOWN\\r\\n" if proxied else b"") + b"hello")
        late.setblocking(False)
        received = await within(asyncio.get_running_loop().sock_recv(late, 5))
        print(json.dumps({"busy": busy, "received": received.decode(), "refused": server.context().refused}))
        for client in (*clients, late):
            client.close()

uvloop.run(main())
"""


@pytest.mark.parametrize("kind", ["plain", "proxied"])
def test_out_of_files(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["received"] == "hello"
    assert found["busy"] < 0.2
    assert kind == "plain" or found["refused"] >= 1
    assert "Traceback" not in done.stderr
