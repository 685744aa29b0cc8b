"""TLS listeners: client certificates, names, versions, new files without a restart, bad handshakes."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from brookmq.base.config.listeners import Tls
from brookmq.base.errors import ConfigError
from brookmq.edge.tls import TlsContexts
from tests.edge.certificates import Authority, CertificateFiles
from tests.edge.echo import EchoServer, serving, until, within


@pytest.fixture(scope="session")
def server_files(authority: Authority) -> CertificateFiles:
    return authority.issue("server", "server", ("localhost", "127.0.0.1"))


@pytest.fixture(scope="session")
def client_files(authority: Authority) -> CertificateFiles:
    return authority.issue("client", "device-7", organization="Example, Inc.")


def tls_settings(files: CertificateFiles, **settings: Any) -> dict[str, Any]:
    return {"cert": str(files.cert), "key": str(files.key), **settings}


def client_context(authority: Authority, files: CertificateFiles | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.ca))
    if files is not None:
        context.load_cert_chain(files.cert, files.key)
    return context


async def connect(
    server: EchoServer, context: ssl.SSLContext, name: str = "localhost"
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await within(asyncio.open_connection(*server.address("tls"), ssl=context, server_hostname=name))


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes = b"hello") -> bytes:
    writer.write(data)
    return await within(reader.readexactly(len(data)))


def shown_name(writer: asyncio.StreamWriter) -> str:
    """The common name of the certificate that the server showed."""
    certificate = writer.get_extra_info("peercert")
    return str(next(value for part in certificate["subject"] for key, value in part if key == "commonName"))


async def test_bytes_go_through(authority: Authority, server_files: CertificateFiles) -> None:
    async with serving("tls", tls=tls_settings(server_files)) as server:
        reader, writer = await connect(server, client_context(authority))
        assert await echo(reader, writer) == b"hello"
        big = bytes(range(256)) * 4096
        assert await echo(reader, writer, big) == big
        peer = (await server.only()).peer
        assert (peer.transport, peer.certificate, peer.port) == ("tls", None, writer.get_extra_info("sockname")[1])
        writer.write(b"close")
        assert await within(reader.read()) == b""
        writer.close()


async def test_client_certificate_is_known(
    authority: Authority, server_files: CertificateFiles, client_files: CertificateFiles
) -> None:
    settings = tls_settings(server_files, ca=str(authority.ca), client_certificates="required")
    async with serving("tls", tls=settings) as server:
        reader, writer = await connect(server, client_context(authority, client_files))
        assert await echo(reader, writer) == b"hello"
        certificate = (await server.only()).peer.certificate
        assert certificate is not None
        assert certificate.common_name == "device-7"
        assert certificate.subject == "O=Example\\, Inc.,CN=device-7"
        assert certificate.serial_number
        writer.close()


@pytest.mark.parametrize("certificate", ["none", "foreign"])
async def test_required_client_certificate_is_required(
    authority: Authority, server_files: CertificateFiles, tmp_path: Path, certificate: str
) -> None:
    settings = tls_settings(server_files, ca=str(authority.ca), client_certificates="required")
    foreign = Authority(tmp_path, "another authority").issue("client", "device-7")
    context = client_context(authority, foreign if certificate == "foreign" else None)
    async with serving("tls", tls=settings) as server:
        try:  # in TLS 1.3 the client is done before the server has looked at its certificate
            reader, writer = await connect(server, context)
            with pytest.raises((ssl.SSLError, asyncio.IncompleteReadError, ConnectionError)):
                await echo(reader, writer)
            writer.close()
        except (ssl.SSLError, ConnectionError):
            pass
        await until(lambda: server.context().tls_failures == 1)
        assert not server.connections
        assert server.context().connections == 0


async def test_optional_client_certificate(
    authority: Authority, server_files: CertificateFiles, client_files: CertificateFiles
) -> None:
    settings = tls_settings(server_files, ca=str(authority.ca), client_certificates="optional")
    async with serving("tls", tls=settings) as server:
        for files in (None, client_files):
            reader, writer = await connect(server, client_context(authority, files))
            assert await echo(reader, writer) == b"hello"
            writer.close()
        assert [c.peer.certificate and c.peer.certificate.common_name for c in server.connections] == [None, "device-7"]


@pytest.mark.parametrize(("version_min", "works"), [("1.2", True), ("1.3", False)])
async def test_lowest_version(
    authority: Authority, server_files: CertificateFiles, version_min: str, works: bool
) -> None:
    context = client_context(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with serving("tls", tls=tls_settings(server_files, version_min=version_min)) as server:
        if works:
            reader, writer = await connect(server, context)
            assert await echo(reader, writer) == b"hello"
            writer.close()
        else:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await connect(server, context)
            await until(lambda: server.context().tls_failures == 1)


async def test_certificate_by_name(authority: Authority, server_files: CertificateFiles) -> None:
    exact = authority.issue("exact", "exact", ("a.example.org",))
    wildcard = authority.issue("wildcard", "wildcard", ("*.example.org",))
    sni = {"A.example.org": tls_settings(exact), "*.example.org": tls_settings(wildcard)}
    context = client_context(authority)
    async with serving("tls", tls=tls_settings(server_files, sni=sni)) as server:
        for name, expected in (("a.example.org", "exact"), ("b.example.org", "wildcard"), ("localhost", "server")):
            reader, writer = await connect(server, context, name)
            assert await echo(reader, writer) == b"hello"
            assert shown_name(writer) == expected
            writer.close()


async def test_client_certificates_are_asked_for_under_every_name(
    authority: Authority, server_files: CertificateFiles, client_files: CertificateFiles
) -> None:
    other = authority.issue("other", "other", ("other.example.org",))
    settings = tls_settings(
        server_files,
        sni={"other.example.org": tls_settings(other)},
        ca=str(authority.ca),
        client_certificates="required",
    )
    async with serving("tls", tls=settings) as server:
        reader, writer = await connect(server, client_context(authority, client_files), "other.example.org")
        assert await echo(reader, writer) == b"hello"
        certificate = (await server.only()).peer.certificate
        assert certificate is not None
        assert certificate.common_name == "device-7"
        writer.close()


async def test_new_files_without_restart(authority: Authority, tmp_path: Path) -> None:
    files = CertificateFiles(tmp_path / "live.crt", tmp_path / "live.key")

    def install(source: CertificateFiles) -> None:
        shutil.copy(source.cert, files.cert)
        shutil.copy(source.key, files.key)

    install(authority.issue("old", "old", ("localhost",)))
    async with serving("tls", tls=tls_settings(files)) as server:
        old_reader, old_writer = await connect(server, client_context(authority))
        assert shown_name(old_writer) == "old"
        install(authority.issue("new", "new", ("localhost",)))
        assert server.listeners.reload() == []
        reader, writer = await connect(server, client_context(authority))
        assert shown_name(writer) == "new"
        assert await echo(old_reader, old_writer) == b"hello"  # who is in stays in

        files.key.write_text("broken")
        errors = server.listeners.reload()
        assert [error.path for error in errors] == ["listeners.one.tls.cert"]
        later_reader, later_writer = await connect(server, client_context(authority))
        assert shown_name(later_writer) == "new"
        assert await echo(later_reader, later_writer) == b"hello"
        for opened in (old_writer, writer, later_writer):
            opened.close()
        assert await within(reader.read()) == b""


def test_key_with_a_password(authority: Authority) -> None:
    files = authority.issue("locked", "locked", password="secret")
    TlsContexts(Tls(**tls_settings(files, key_password="secret")), "listeners.one.tls", "mqtt")
    for password, message in (("", "the key has a password, set key_password"), ("wrong", "key_password is wrong")):
        with pytest.raises(ConfigError, match=message):
            TlsContexts(Tls(**tls_settings(files, key_password=password)), "listeners.one.tls", "mqtt")


def test_bad_files_are_named(authority: Authority, server_files: CertificateFiles, tmp_path: Path) -> None:
    other = authority.issue("unrelated", "unrelated")
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    cases = [
        ({"cert": str(tmp_path / "none"), "key": str(server_files.key)}, "tls.cert: cannot read .*none: No such file"),
        ({"cert": str(server_files.cert), "key": str(tmp_path / "none")}, "tls.key: cannot read .*none: No such file"),
        ({"cert": str(server_files.cert), "key": str(other.key)}, "is not the key of the certificate in"),
        ({"cert": str(empty), "key": str(server_files.key)}, "are not a certificate and its key in PEM form"),
        (tls_settings(server_files, ca=str(tmp_path / "none")), "tls.ca: cannot read .*none: No such file"),
        (tls_settings(server_files, ca=str(empty)), "tls.ca: .*empty.pem has no certificates in PEM form"),
        (tls_settings(server_files, client_certificates="required"), "tls.ca: client certificates are asked for"),
        (
            tls_settings(server_files, sni={"a.example.org": tls_settings(other, key=str(server_files.key))}),
            r'tls.sni."a.example.org".cert: the key in .* is not the key',
        ),
    ]
    for settings, message in cases:
        with pytest.raises(ConfigError, match=message) as caught:
            TlsContexts(Tls(**settings), "listeners.one.tls", "mqtt")
        assert caught.value.path.startswith("listeners.one.tls.")


async def test_what_is_not_tls_is_closed(server_files: CertificateFiles) -> None:
    async with serving("tls", tls=tls_settings(server_files)) as server:
        reader, writer = await within(asyncio.open_connection(*server.address("tls")))
        writer.write(b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00")
        await within(reader.read())  # an alert, perhaps
        writer.close()
        await until(lambda: server.context().tls_failures == 1)
        assert server.context().connections == 0


async def test_a_handshake_that_never_ends_is_ended(server_files: CertificateFiles) -> None:
    async with serving("tls", tls=tls_settings(server_files), connect_seconds=0.2) as server:
        reader, writer = await within(asyncio.open_connection(*server.address("tls")))
        writer.write(b"\x16\x03\x01\x02\x00")
        assert await within(reader.read()) == b""
        await until(lambda: server.context().tls_failures == 1)
        writer.close()


async def test_over_the_limit_no_handshake_is_begun(authority: Authority, server_files: CertificateFiles) -> None:
    async with serving("tls", tls=tls_settings(server_files), connections_max=1) as server:
        _, kept = await connect(server, client_context(authority))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await connect(server, client_context(authority))
        assert (server.context().refused, server.context().tls_failures) == (1, 0)
        kept.close()


async def test_handshakes_under_way_end_with_the_listener(server_files: CertificateFiles) -> None:
    server = serving("tls", tls=tls_settings(server_files))
    await server.__aenter__()
    with socket.create_connection(server.address("tls")) as silent:
        silent.setblocking(False)
        await until(lambda: server.context().connections == 1)
        await server.__aexit__()  # waits until none is left
        assert await within(asyncio.get_running_loop().sock_recv(silent, 1)) == b""


async def test_a_session_is_resumed(authority: Authority, server_files: CertificateFiles) -> None:
    """Devices that come back often save the costly half of the handshake."""
    context = client_context(authority)

    def handshake(address: tuple[str, int], session: ssl.SSLSession | None) -> tuple[ssl.SSLSession | None, bool]:
        with (
            socket.create_connection(address, timeout=60) as plain,
            context.wrap_socket(plain, server_hostname="localhost", session=session) as secure,
        ):
            secure.sendall(b"x")
            assert secure.recv(1) == b"x"
            return secure.session, bool(secure.session_reused)

    async with serving("tls", tls=tls_settings(server_files)) as server:
        session, reused = await within(asyncio.to_thread(handshake, server.address("tls"), None))
        assert not reused
        _, reused = await within(asyncio.to_thread(handshake, server.address("tls"), session))
        assert reused
