"""The library's client: connections with TLS that fail or freeze are left behind at once."""

from __future__ import annotations

import time
from pathlib import Path

from brookmq.store.link import Link, LinkSettings
from brookmq.store.tls import tls_of
from tests.store.log_servers import DEADLINE_S, Servers, run, running, until
from tests.store.secure_servers import Secured, secure_urls, store_of

AWAY_SECONDS_MAX = 6.0  # pings are missed for 3 s; TLS alone would wait for a goodbye for 30 s


def secure_link(servers: Servers, ca: str) -> Link:
    return Link(LinkSettings(secure_urls(servers), "test", tls=tls_of(store_of(servers, ca=ca))))


def test_a_frozen_server_is_left_for_another_one(tmp_path: Path) -> None:
    secured = Secured(tmp_path)

    async def test(servers: Servers) -> None:
        link = secure_link(servers, secured.ca)
        await link.open(DEADLINE_S)
        connected = link.client.connected_url
        assert connected is not None
        index = servers.ports.index(connected.port)
        begin = time.monotonic()
        servers.freeze(index)
        try:
            await until(lambda: not link.up, "found out by pings", AWAY_SECONDS_MAX)
            await until(lambda: link.up, "another one", AWAY_SECONDS_MAX)
            assert link.client.connected_url not in (None, connected)
            print(f"connected to another one {time.monotonic() - begin:.2f} s after it froze")
        finally:
            servers.thaw(index)
        await link.close()

    with running(3, extra=secured.settings()) as servers:
        run(test(servers))


def test_a_failed_handshake_ends_neither_the_link_nor_its_trying(tmp_path: Path) -> None:
    secured = Secured(tmp_path)

    async def test(servers: Servers) -> None:
        link = secure_link(servers, str(secured.foreign.ca))
        link.begin()
        for _ in range(3):
            link.reason = ""
            await until(lambda: "certificate verify failed" in link.reason, "it is tried, and said", 5.0)
        assert not link.up
        await link.close()

    with running(extra=secured.settings()) as servers:
        run(test(servers))
