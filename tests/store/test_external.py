"""Stores that somebody else runs: who trusts whom, and what is said when somebody does not."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from brookmq.base.config.storing import Store
from brookmq.base.errors import ConfigError
from brookmq.store.diagnosis import Diagnosis
from brookmq.store.external import ExternalStore
from brookmq.store.settings_file import Credentials
from brookmq.store.tls import tls_of
from tests.store.log_servers import DEADLINE_S, Servers, run, running, until
from tests.store.secure_servers import Secured, store_of

REFUSED = "('Authorization Violation') at {}; see store.user and store.password, or store.token"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Secured:
    return Secured(Path(tmp_path_factory.mktemp("certificates")))


async def works(settings: Store, credentials: Credentials | None = None, token: str | None = None) -> None:
    store = ExternalStore(settings.servers, credentials, lambda: None, lambda _: None, tls_of(settings), token)
    assert await store.start(DEADLINE_S), store.reason
    await store.stop()


async def fails(
    settings: Store, expected: str, credentials: Credentials | None = None, token: str | None = None
) -> None:
    """Says this, again and again."""
    told: list[Diagnosis] = []
    store = ExternalStore(settings.servers, credentials, lambda: None, told.append, tls_of(settings), token)
    assert not await store.start(0.0)
    address = settings.servers[0].partition("://")[2]
    await until(lambda: store.reason == f"the store does not answer {expected.format(address)}", store.reason)
    await store.stop()


def test_tls_with_the_right_authority_only(secured: Secured) -> None:
    async def test(servers: Servers) -> None:
        await works(store_of(servers, ca=secured.ca))
        unknown = "(its certificate is not trusted: unable to get local issuer certificate) at {}; see store.ca"
        await fails(store_of(servers, ca=str(secured.foreign.ca)), unknown)
        await fails(store_of(servers), unknown)  # none of the system's
        plain = unknown.replace("see", "it asks for TLS: write tls:// in store.servers, and see")
        await fails(Store(servers=servers.urls), plain)

    with running(extra=secured.settings()) as servers:
        run(test(servers))


def test_a_certificate_has_to_be_of_this_address(secured: Secured) -> None:
    named = secured.authority.issue("named", "named", ("store.example.org",))

    async def test(servers: Servers) -> None:
        mismatch = "IP address mismatch, certificate is not valid for '127.0.0.1'"
        advice = "its certificate has to name the address in store.servers"
        await fails(store_of(servers, ca=secured.ca), f"(its certificate is not trusted: {mismatch}) at {{}}; {advice}")

    with running(extra=secured.settings(named)) as servers:
        run(test(servers))


def test_a_server_that_asks_for_certificates(secured: Secured) -> None:
    locked = secured.authority.issue("locked", "locked", password="secret")
    foreign = secured.foreign.issue("client", "client")

    async def test(servers: Servers) -> None:
        right = store_of(servers, ca=secured.ca, cert=str(secured.client.cert), key=str(secured.client.key))
        await works(right)
        keys = {"servers": right.servers, "ca": secured.ca, "cert": str(locked.cert), "key": str(locked.key)}
        await works(Store.model_validate(keys | {"key_password": "secret"}))
        refused = (
            "(it asks for a certificate that it trusts, and has closed the connection) at {}; "
            "see store.cert and store.key"
        )
        await fails(store_of(servers, ca=secured.ca), refused)
        await fails(store_of(servers, ca=secured.ca, cert=str(foreign.cert), key=str(foreign.key)), refused)

    with running(extra=secured.settings(verify=True)) as servers:
        run(test(servers))


def test_a_server_without_tls_is_told_nothing(secured: Secured) -> None:
    """Not even the password, although the server asks for one."""

    async def test(servers: Servers) -> None:
        credentials = Credentials("core", "right")
        await works(Store(servers=servers.urls), credentials)
        await fails(
            store_of(servers, ca=secured.ca), "(it does not ask for TLS) at {}; store.servers says tls://", credentials
        )

    with running(extra='authorization { user: core, password: "right" }') as servers:
        run(test(servers))


def test_passwords_and_tokens() -> None:
    async def test(servers: Servers, credentials: Credentials | None, token: str | None) -> None:
        settings = Store(servers=servers.urls)
        await works(settings, credentials, token)
        await fails(settings, REFUSED)
        await fails(settings, REFUSED, Credentials("core", "wrong"))
        await fails(settings, REFUSED, token="wrong")

    with running(extra='authorization { user: core, password: "right" }') as servers:
        run(test(servers, Credentials("core", "right"), None))
    with running(extra='authorization { token: "right" }') as servers:
        run(test(servers, None, "right"))


def test_files_that_cannot_be_used_are_named_with_their_key(secured: Secured, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no certificate")
    servers = ["tls://127.0.0.1:1"]
    with pytest.raises(ConfigError, match=rf"^store\.ca: {text} has no certificates in PEM form$"):
        tls_of(Store(servers=servers, ca=str(text)))
    with pytest.raises(ConfigError, match=rf"^store\.key: cannot read {tmp_path}/none: No such file or directory$"):
        tls_of(Store(servers=servers, cert=str(secured.client.cert), key=str(tmp_path / "none")))
    with pytest.raises(
        ConfigError, match=r"^store\.cert: the key in .*/server\.key is not the key of the certificate in"
    ):
        tls_of(Store(servers=servers, cert=str(secured.client.cert), key=str(secured.server.key)))


def test_without_tls_there_is_no_context() -> None:
    assert tls_of(Store()) is None
    assert tls_of(Store(servers=["nats://127.0.0.1:1"])) is None
    context = tls_of(Store(servers=["tls://127.0.0.1:1"]))
    assert context is not None
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
