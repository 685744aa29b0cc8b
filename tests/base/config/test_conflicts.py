"""What has to hold between keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from brookmq.base.config import Config, unprotected
from brookmq.base.config.model import conflicts


def problems(**sections: object) -> list[str]:
    return [str(problem) for problem in conflicts(Config.model_validate(sections))]


@pytest.fixture
def certificate(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "server.crt").touch()
    (tmp_path / "server.key").touch()
    return {"cert": str(tmp_path / "server.crt"), "key": str(tmp_path / "server.key")}


def test_the_defaults_have_none() -> None:
    assert problems() == []


@pytest.mark.parametrize("kind", ["tls", "wss"])
def test_tls_needs_a_certificate(kind: str, certificate: dict[str, str]) -> None:
    assert problems(listeners={"a": {"type": kind, "bind": "127.0.0.1:0"}}) == [
        f"listeners.a.tls: a {kind} listener needs tls.cert and tls.key"
    ]
    assert problems(listeners={"a": {"type": kind, "bind": "127.0.0.1:0", "tls": certificate}}) == []


def test_tls_settings_on_a_listener_without_tls(certificate: dict[str, str]) -> None:
    [problem] = problems(listeners={"a": {"bind": "127.0.0.1:0", "tls": certificate}})
    assert problem == 'listeners.a.tls: a tcp listener has no TLS; did you mean type = "tls" or "wss"?'


def test_files_have_to_exist(certificate: dict[str, str]) -> None:
    tls = {
        **certificate,
        "cert": "/none.crt",
        "ca": "/none-ca.crt",
        "sni": {"example.org": {**certificate, "key": "/none.key"}},
    }
    assert problems(listeners={"a": {"type": "tls", "bind": "127.0.0.1:0", "tls": tls}}) == [
        "listeners.a.tls.cert: no such file: /none.crt",
        "listeners.a.tls.sni.example.org.key: no such file: /none.key",
        "listeners.a.tls.ca: no such file: /none-ca.crt",
    ]


def test_client_certificates_need_something_to_check_them_with(certificate: dict[str, str]) -> None:
    tls = {**certificate, "client_certificates": "required"}
    assert problems(listeners={"a": {"type": "tls", "bind": "127.0.0.1:0", "tls": tls}}) == [
        "listeners.a.tls.ca: client_certificates = required needs it"
    ]


def test_addresses_are_checked_and_paths_are_not() -> None:
    [problem] = problems(listeners={"a": {"bind": "here"}, "b": {"type": "unix", "bind": "here"}})
    assert problem == ("listeners.a.bind: expected HOST:PORT, such as 127.0.0.1:1883 or [::1]:1883; got 'here'")
    assert problems(listeners={"a": {"type": "unix", "bind": ""}}) == [
        "listeners.a.bind: a unix listener needs the path of its socket"
    ]


def test_a_disabled_listener_is_not_looked_at() -> None:
    assert problems(listeners={"a": {"type": "tls", "bind": "0.0.0.0:1", "enable": False}}) == []


def test_two_listeners_cannot_share_an_address() -> None:
    assert problems(listeners={"a": {"bind": "127.0.0.1:5"}, "b": {"type": "ws", "bind": "127.0.0.1:5"}}) == [
        "listeners.b.bind: 127.0.0.1:5 is taken already by listeners.a.bind"
    ]
    assert problems(listeners={"a": {"bind": "127.0.0.1:5"}}, http={"bind": "127.0.0.1:5"}) == [
        "http.bind: 127.0.0.1:5 is taken already by listeners.a.bind"
    ]
    sockets = {"a": {"type": "unix", "bind": "x.sock"}, "b": {"type": "unix", "bind": "./x.sock"}}
    assert problems(listeners=sockets) == ["listeners.b.bind: ./x.sock is taken already by listeners.a.bind"]


def test_without_an_authenticator_mqtt_stays_on_loopback() -> None:
    listeners = {"a": {"bind": "0.0.0.0:1883"}}
    [problem] = problems(listeners=listeners)
    assert problem.startswith("listeners.a.bind: 0.0.0.0:1883 is open to other machines and there is no authenticator;")
    assert "access.anonymous = true" in problem
    assert problems(listeners=listeners, access={"anonymous": True}) == []
    assert problems(listeners=listeners, plugins={"enabled": ["authenticator"]}) == []
    assert problems(listeners={"a": {"type": "unix", "bind": "x.sock"}}) == []


def test_without_a_login_http_stays_on_loopback() -> None:
    [problem] = problems(http={"bind": "[::]:18083"}, access={"anonymous": True})
    assert problem.startswith("http.bind: [::]:18083 is open to other machines and there is no login;")
    assert problems(http={"bind": "[::]:18083", "enable": False}) == []


def test_the_node_asks_again_when_it_knows_what_its_plugins_do() -> None:
    config = Config.model_validate(
        {"listeners": {"a": {"bind": "0.0.0.0:1"}}, "http": {"bind": "0.0.0.0:2"}, "plugins": {"enabled": ["x"]}}
    )
    assert [problem.path for problem in unprotected(config)] == ["listeners.a.bind", "http.bind"]
    assert [problem.path for problem in unprotected(config, authenticator=True)] == ["http.bind"]
    assert list(unprotected(config, authenticator=True, login=True)) == []


def test_each_shard_of_the_journal_needs_room() -> None:
    assert problems(journal={"shards": 4, "max_bytes": "64MiB"}) == []
    assert problems(journal={"shards": 5, "max_bytes": "64MiB"}) == [
        "journal.max_bytes: 5 shards need at least 80MiB, got 64MiB"
    ]


def test_what_servers_of_the_store_need(certificate: dict[str, str]) -> None:
    secure = {"servers": ["tls://a:1", "tls://b:1"]}
    assert problems(store={"servers": ["nats://a:1"], "user": "core", "password": "x"}) == []
    assert problems(store={**secure, **certificate, "ca": certificate["cert"], "token": "x"}) == []
    assert problems(store={**secure, "ca": "/none.crt", "cert": "/none.crt", "key": "/none.key"}) == [
        "store.ca: no such file: /none.crt",
        "store.cert: no such file: /none.crt",
        "store.key: no such file: /none.key",
    ]
    assert problems(store={**secure, "cert": certificate["cert"]}) == ["store.key: store.cert needs it"]
    assert problems(store={**secure, "key": certificate["key"]}) == ["store.cert: store.key needs it"]
    assert problems(store={**secure, "password": "x"}) == ["store.user: store.password needs it"]
    assert problems(store={**secure, "user": "core", "token": "x"}) == [
        "store.token: store.user is set too; one of them is enough"
    ]
    assert problems(store={"servers": ["tls://a:1", "nats://b:1"]}) == [
        "store.servers: either all of them are tls:// or none is"
    ]
    assert problems(store={"servers": ["nats://a:1"], "ca": certificate["cert"]}) == [
        "store.ca: it is for TLS; did you mean tls:// instead of nats:// in store.servers?"
    ]


@pytest.mark.parametrize("key", ["user", "password", "token", "ca", "cert", "key"])
def test_keys_for_servers_without_servers(key: str) -> None:
    assert problems(store={key: "x"}) == [f"store.{key}: it is for store.servers, and there are none"]


def test_a_pipeline_needs_http() -> None:
    assert problems(pipeline={"autostart": True}) == []
    assert problems(pipeline={"autostart": True}, http={"enable": False}) == [
        "pipeline.autostart: a pipeline asks the node over HTTP: it needs http.enable = true"
    ]
