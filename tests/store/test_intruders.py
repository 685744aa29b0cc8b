"""Nobody without the cluster's secret gets in, neither where clients connect nor where stores do.

Against real servers, on the wire. Each way in is tried with one thing missing; the same knock with nothing missing is
let in, so a refusal is about what is missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from brookmq.store.errors import StoreError
from brookmq.store.joining import init_cluster, join_cluster, read_secret
from brookmq.store.link import Link
from brookmq.store.membership import Membership, secret_path
from brookmq.store.prepare import SETTINGS
from brookmq.store.streams import Stream, look
from tests.store.log_servers import declared, until
from tests.store.three_stores import ThreeStores, three_stores

KNOCK_SECONDS_MAX = 10.0
CLOCK_SECONDS = 0.5  # from the last word of a store to its death, as others see it
TRYING_SECONDS = 3.0  # for a store that tries to get in; its first attempts come at once, then one a second
TEST_SECONDS_MAX = 60.0


@dataclass(frozen=True)
class Door:
    """A member that runs, and a cluster of the same name and the same cores whose secret is another one."""

    stores: ThreeStores
    ours: Membership
    strangers: Membership

    @property
    def client_port(self) -> int:
        return self.ours.node.port

    @property
    def route_port(self) -> int:
        return self.ours.node.route_port


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """One of three is enough: it takes connections before it has a majority."""
    path = tmp_path_factory.mktemp("door")
    with three_stores(path / "ours", start=False) as stores:
        ours = stores.memberships[0]
        strangers, _ = init_cluster(path / "theirs", ours.cluster, ours.node.name, ours.cores)
        stores.start(0)
        asyncio.run(until(lambda: "Server is ready" in stores.log(0), "it listens"))
        yield Door(stores, ours, strangers)


def client_words(user: str, password: str) -> bytes:
    fields = {"user": user, "pass": password, "verbose": False, "pedantic": False, "protocol": 1, "tls_required": True}
    return b"CONNECT %s\r\nPING\r\n" % json.dumps(fields).encode()


def route_words(user: str, password: str, cluster: str) -> bytes:
    fields = {"user": user, "pass": password, "server_id": "KNOCK", "server_name": "knock", "cluster": cluster}
    described = {**fields, "proto": 1, "headers": True, "max_payload": 1048576, "tls_required": True}
    return b"CONNECT %s\r\nINFO %s\r\nPING\r\n" % (json.dumps(fields).encode(), json.dumps(described).encode())


async def knock(port: int, context: ssl.SSLContext | None, words: bytes, *, told_first: bool) -> str:
    """What the server answers until it lets us in (PONG) or closes; ``told_first``: it says INFO before TLS."""
    heard = b""
    try:
        async with asyncio.timeout(KNOCK_SECONDS_MAX):
            if told_first or context is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                if told_first:
                    await reader.readline()
                if context is not None:
                    await writer.start_tls(context, server_hostname="127.0.0.1")
            else:
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            try:
                writer.write(words)
                while b"PONG" not in heard and (more := await reader.read(65536)):
                    heard += more
            finally:
                writer.transport.abort()
    except (OSError, ssl.SSLError) as error:
        return f"{heard.decode()} {type(error).__name__} {error}"
    return heard.decode()


def assert_refused(heard: str, reasons: str) -> None:
    """With one of these reasons; or with none that could be heard: a server that closes before it has read all that we
    said resets the connection, and that may destroy its last words on their way."""
    assert re.search(f"{reasons}|ConnectionResetError|BrokenPipeError", heard), heard
    assert "PONG" not in heard


def without_certificate(membership: Membership) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=membership.tls_files.authority)


def of_strangers(door: Door) -> ssl.SSLContext:
    """Their certificate; ours is trusted, so that it is the server that refuses."""
    context = without_certificate(door.ours)
    context.load_cert_chain(door.strangers.tls_files.certificate, door.strangers.tls_files.key)
    return context


def signed_by_nobody(door: Door, path: Path) -> ssl.SSLContext:
    """A certificate of an authority that claims our authority's name."""
    context = without_certificate(door.ours)
    stranger = join_cluster(path, read_secret(secret_path(door.strangers.path.parent)), door.ours.node.name)
    context.load_cert_chain(stranger.tls_files.certificate, stranger.tls_files.key)
    return context


def of_tls_1_2(membership: Membership) -> ssl.SSLContext:
    context = membership.tls_context()
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


class TestClients:
    async def test_with_everything(self, door: Door) -> None:
        words = client_words(*door.ours.credentials)
        heard = await knock(door.client_port, door.ours.tls_context(), words, told_first=True)
        assert "PONG" in heard
        assert "-ERR" not in heard

    @pytest.mark.parametrize("user", ["core", "route", "", "sys"])
    async def test_with_a_certificate_and_a_wrong_password(self, door: Door, user: str) -> None:
        for password in ("", "guess", door.ours.route_password, door.strangers.core_password):
            words = client_words(user, password)
            heard = await knock(door.client_port, door.ours.tls_context(), words, told_first=True)
            assert_refused(heard, "Authorization Violation")

    async def test_without_a_certificate(self, door: Door) -> None:
        words = client_words(*door.ours.credentials)
        heard = await knock(door.client_port, without_certificate(door.ours), words, told_first=True)
        assert_refused(heard, "CERTIFICATE_REQUIRED")

    async def test_with_the_certificate_of_another_cluster(self, door: Door, tmp_path: Path) -> None:
        words = client_words(*door.ours.credentials)
        for context in (of_strangers(door), signed_by_nobody(door, tmp_path)):
            heard = await knock(door.client_port, context, words, told_first=True)
            assert_refused(heard, "UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_REQUIRED|DECRYPT_ERROR")

    async def test_without_tls(self, door: Door) -> None:
        heard = await knock(door.client_port, None, client_words(*door.ours.credentials), told_first=True)
        assert heard == "", "closed without a word"

    async def test_with_an_older_tls(self, door: Door) -> None:
        words = client_words(*door.ours.credentials)
        heard = await knock(door.client_port, of_tls_1_2(door.ours), words, told_first=True)
        assert_refused(heard, "PROTOCOL_VERSION")

    async def test_a_member_does_not_talk_to_a_server_of_another_cluster(self, door: Door) -> None:
        words = client_words(*door.strangers.credentials)
        heard = await knock(door.client_port, door.strangers.tls_context(), words, told_first=True)
        assert "CERTIFICATE_VERIFY_FAILED" in heard


class TestRoutes:
    def words(self, door: Door) -> bytes:
        return route_words("route", door.ours.route_password, door.ours.cluster)

    async def test_with_everything(self, door: Door) -> None:
        heard = await knock(door.route_port, door.ours.tls_context(), self.words(door), told_first=False)
        assert "PONG" in heard
        assert "-ERR" not in heard

    @pytest.mark.parametrize("user", ["route", "core", ""])
    async def test_with_a_certificate_and_a_wrong_password(self, door: Door, user: str) -> None:
        for password in ("", "guess", door.ours.core_password, door.strangers.route_password):
            words = route_words(user, password, door.ours.cluster)
            heard = await knock(door.route_port, door.ours.tls_context(), words, told_first=False)
            assert_refused(heard, "Authorization Violation")

    async def test_without_a_certificate(self, door: Door) -> None:
        heard = await knock(door.route_port, without_certificate(door.ours), self.words(door), told_first=False)
        assert_refused(heard, "CERTIFICATE_REQUIRED")

    async def test_with_the_certificate_of_another_cluster(self, door: Door, tmp_path: Path) -> None:
        for context in (of_strangers(door), signed_by_nobody(door, tmp_path)):
            heard = await knock(door.route_port, context, self.words(door), told_first=False)
            assert_refused(heard, "UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_REQUIRED|DECRYPT_ERROR")

    async def test_without_tls(self, door: Door) -> None:
        heard = await knock(door.route_port, None, self.words(door), told_first=False)
        assert heard == "", "closed without a word"

    async def test_with_an_older_tls(self, door: Door) -> None:
        heard = await knock(door.route_port, of_tls_1_2(door.ours), self.words(door), told_first=False)
        assert_refused(heard, "PROTOCOL_VERSION")


THREE = Stream(name="THREE", subjects=("three",), replicas=3)


def test_a_whole_store_without_the_secret_stays_outside(tmp_path: Path) -> None:
    """In the third one's place: one with another secret, then one with our certificate and a wrong password."""
    with three_stores(tmp_path / "ours") as stores:
        stores.wait_ready()
        asyncio.run(asyncio.wait_for(_replace_the_third(stores, tmp_path), TEST_SECONDS_MAX))


async def _replace_the_third(stores: ThreeStores, path: Path) -> None:
    ours = stores.memberships[2]
    settings = path / "ours" / "2" / "store" / SETTINGS
    right = settings.read_text()
    strangers, _ = init_cluster(path / "theirs", ours.cluster, ours.node.name, ours.cores)
    others_files = right.replace(str(ours.path), str(strangers.path))
    link = Link(stores.link_settings("test"))
    try:
        await link.open(30)
        await declared(link, THREE)
        await let_another_lead(link, ours)
        stores.kill(2)
        killed = time.monotonic()
        for wrong, complaint in (
            (others_files.replace(ours.route_password, strangers.route_password), "signed by unknown authority"),
            (right.replace(ours.route_password, "guess"), "Authorization Violation"),
        ):
            assert wrong != right
            settings.write_text(wrong)
            before = stores.log(2).count(complaint)
            stores.start(2)
            begun = time.monotonic()
            await until(lambda begun=begun: time.monotonic() > begun + TRYING_SECONDS, "it has had its time")
            assert stores.log(2).count(complaint) > before
            unheard = time.monotonic() - killed - CLOCK_SECONDS
            assert await heard_of_third(link, ours) > unheard, "nothing came from the one in its place"
            stores.kill(2)
        settings.write_text(right)
        stores.start(2)
        while await heard_of_third(link, ours) > unheard:
            pass
    finally:
        await link.close()


async def let_another_lead(link: Link, ours: Membership) -> None:
    """A leader speaks of its replicas and not of itself."""
    while (await look(link, "THREE")).leader in ("", ours.node.name):
        with contextlib.suppress(StoreError):
            await link.api("STREAM.LEADER.STEPDOWN.THREE")
        await asyncio.sleep(0.2)


async def heard_of_third(link: Link, ours: Membership) -> float:
    """How many seconds ago the stream's leader heard of the third store; one that was elected since never did."""
    while True:
        await asyncio.sleep(0.05)
        with contextlib.suppress(StoreError):  # an election
            found = (await link.api("STREAM.INFO.THREE"))["cluster"]
            for replica in found.get("replicas") or ():
                if found.get("leader") and replica["name"] == ours.node.name:
                    return float(replica["active"]) / 1e9 or math.inf
