"""A node on servers with TLS, certificates and passwords that come from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.node import NotReadyError
from tests.harness.wire import KEPT
from tests.node.watching import WatchedStore, until
from tests.store.log_servers import running
from tests.store.secure_servers import Secured, secure_urls

ROOM = "100GB"
USERS = 'accounts {\n  BROOKMQ { jetstream: enabled, users: [{ user: "core", password: "right" }] }\n}'


@pytest.fixture
def secured(tmp_path: Path) -> Secured:
    return Secured(tmp_path / "certificates")


def config_of(urls: list[str], **keys: object) -> str:
    return "\n".join(["[store]", f"servers = {urls}", *(f'{key} = "{value}"' for key, value in keys.items())])


def test_both_sides_show_certificates_and_the_password_is_in_a_file(
    make_node: NodeMaker, client: ClientMaker, secured: Secured, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text("right\n")
    keys = {
        "ca": secured.ca, "cert": secured.client.cert, "key": secured.client.key,
        "user": "core", "password_file": password,
    }  # fmt: skip
    with running(extra=f"{secured.settings(verify=True)}\n{USERS}", room=ROOM) as servers:
        node = make_node(config_of(secure_urls(servers), **keys))
        with WatchedStore(node) as watched:
            watched.until_ready()
            reader = client(5, "reader", to=node, **KEPT)
            reader.subscribe("kept/#", qos=1)
            reader.disconnect()
            publisher = client(5, to=node)
            publisher.publish("kept/a", b"before", qos=1)
            servers.kill()
            watched.until_not_ready()
            servers.start()
            watched.until_ready()
            publisher.publish("kept/a", b"after", qos=1)
            assert client(5, "reader", to=node, **KEPT).take_payloads(2) == [b"before", b"after"]
        assert node.stop() == 0
        assert "right" not in node.log()


def test_what_does_not_fit_is_told(make_node: NodeMaker, secured: Secured, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("not-the-one")
    with running(extra=f"{secured.settings()}\n{USERS}", room=ROOM) as servers:
        urls = secure_urls(servers)
        with WatchedStore(make_node(config_of(urls, ca=secured.foreign.ca))) as watched:
            until(lambda: watched.readiness().endswith("; see store.ca"), "an unknown authority")
            assert "is not trusted" in watched.alarms()["store_down"]
        node = make_node(config_of(urls, ca=secured.ca, user="core", password_file=wrong))
        with WatchedStore(node) as watched:
            until(lambda: "see store.user and store.password" in watched.readiness(), "a refused password")
        assert "not-the-one" not in node.log()


def test_a_token(make_node: NodeMaker, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("right")
    with running(extra='authorization { token: "right" }', room=ROOM) as servers:
        with WatchedStore(make_node(config_of(servers.urls, token_file=token))) as watched:
            watched.until_ready()
        token.write_text("wrong")
        with WatchedStore(make_node(config_of(servers.urls, token_file=token))) as watched:
            until(lambda: "or store.token" in watched.readiness(), "a refused token")


def test_files_that_are_not_there_end_the_start(make_node: NodeMaker, secured: Secured, tmp_path: Path) -> None:
    none, text = tmp_path / "none", tmp_path / "text"
    text.write_text("no certificate")
    urls = ["tls://127.0.0.1:1"]
    for keys, line in [
        ({"ca": none}, f"store.ca: no such file: {none}"),
        ({"user": "core", "password_file": none}, f"store.password_file: cannot read {none}: No such file or dir"),
        ({"ca": text}, f"store.ca: {text} has no certificates in PEM form"),
        ({"cert": secured.client.cert, "key": secured.server.key}, f"store.cert: the key in {secured.server.key} is"),
    ]:
        with pytest.raises(NotReadyError, match=r"exit code 2, log:\nbrookmq: ") as failed:
            make_node(config_of(urls, **keys))
        assert f"brookmq: {line}" in str(failed.value)
        assert "Traceback" not in str(failed.value)
