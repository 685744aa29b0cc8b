"""The whole configuration, and what has to hold between its keys."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from pydantic import Field

from brookmq.base.config.listeners import LISTENER_EXAMPLES, Certificate, Http, Listener
from brookmq.base.config.operation import Access, Cluster, Edge, Log, Node, Pipeline, Plugins
from brookmq.base.config.protocol import (
    AutoSubscribe,
    Delayed,
    Exclusive,
    Mqtt,
    Retained,
    Rewrite,
    Session,
    Shared,
    SysTopics,
)
from brookmq.base.config.section import Section, setting
from brookmq.base.config.storing import SHARD_BYTES_MIN, TLS_SCHEME, Journal, Store
from brookmq.base.config.values import parse_address, render_size
from brookmq.base.errors import ConfigError


class Config(Section):
    """Sections as attributes, numbers in bytes and seconds: ``config.mqtt.packet_size_max``."""

    node: Node = Field(default_factory=Node)
    cluster: Cluster = Field(default_factory=Cluster)
    listeners: dict[str, Listener] = Field(
        default_factory=lambda: {"default": Listener()},
        description="Where clients connect. As soon as one listener is configured, only configured ones exist.",
        examples=LISTENER_EXAMPLES,
    )
    http: Http = Field(default_factory=Http)
    access: Access = Field(default_factory=Access)
    mqtt: Mqtt = Field(default_factory=Mqtt)
    session: Session = Field(default_factory=Session)
    store: Store = Field(default_factory=Store)
    journal: Journal = Field(default_factory=Journal)
    pipeline: Pipeline = Field(default_factory=Pipeline)
    edge: Edge = Field(default_factory=Edge)
    retained: Retained = Field(default_factory=Retained)
    delayed: Delayed = Field(default_factory=Delayed)
    shared: Shared = Field(default_factory=Shared)
    exclusive: Exclusive = Field(default_factory=Exclusive)
    sys_topics: SysTopics = Field(default_factory=SysTopics)
    log: Log = Field(default_factory=Log)
    plugins: Plugins = Field(default_factory=Plugins)
    rewrite: list[Rewrite] = setting(
        [],
        "Topics that stand for others; of several that match, the last one counts.",
        examples=[[{"action": "all", "filter": "old/#", "pattern": "^old/(.+)/(.+)$", "target": "new/$1/$2"}]],
    )
    auto_subscribe: list[AutoSubscribe] = setting(
        [],
        "Subscriptions that every client gets when it connects.",
        examples=[
            [
                {
                    "filter": "device/${client_id}/commands",
                    "qos": 1,
                    "no_local": False,
                    "retain_as_published": False,
                    "retain_handling": 0,
                }
            ]
        ],
    )


def conflicts(config: Config) -> Iterator[ConfigError]:
    """What single keys cannot show: each finding names the key to change."""
    for name, listener in config.listeners.items():
        if listener.enable:
            yield from _listener_conflicts(f"listeners.{name}", listener)
    yield from _bind_conflicts(config)
    yield from _store_conflicts(config.store)
    yield from _journal_conflicts(config.journal)
    if config.pipeline.autostart and not config.http.enable:
        yield ConfigError("pipeline.autostart", "a pipeline asks the node over HTTP: it needs http.enable = true")
    plugins = config.plugins
    if not (plugins.enabled or plugins.required):  # a plugin may be the authenticator: the node asks when it knows
        yield from unprotected(config)


def _listener_conflicts(path: str, listener: Listener) -> Iterator[ConfigError]:
    if listener.type == "unix":
        if not listener.bind:
            yield ConfigError(f"{path}.bind", "a unix listener needs the path of its socket")
    else:
        try:
            parse_address(listener.bind)
        except ValueError as error:
            yield ConfigError(f"{path}.bind", str(error))
    if listener.is_secure and listener.tls is None:
        yield ConfigError(f"{path}.tls", f"a {listener.type} listener needs tls.cert and tls.key")
    if listener.tls is None:
        return
    if not listener.is_secure:
        yield ConfigError(f"{path}.tls", f'a {listener.type} listener has no TLS; did you mean type = "tls" or "wss"?')
    yield from _missing_files(f"{path}.tls", listener.tls)
    for host, certificate in listener.tls.sni.items():
        yield from _missing_files(f"{path}.tls.sni.{host}", certificate)
    if listener.tls.ca:
        yield from _missing_file(f"{path}.tls.ca", listener.tls.ca)
    elif listener.tls.client_certificates != "none":
        yield ConfigError(f"{path}.tls.ca", f"client_certificates = {listener.tls.client_certificates} needs it")


def _store_conflicts(store: Store) -> Iterator[ConfigError]:
    password, token = store.password.get_secret_value(), store.token.get_secret_value()
    files = {"ca": store.ca, "cert": store.cert, "key": store.key}
    if not store.servers:
        readers = {"reader_user": store.reader_user, "reader_password": store.reader_password.get_secret_value()}
        for name, value in {"user": store.user, "password": password, "token": token, **readers, **files}.items():
            if value:
                yield ConfigError(f"store.{name}", "it is for store.servers, and there are none")
        return
    if password and not store.user:
        yield ConfigError("store.user", "store.password needs it")
    if token and store.user:
        yield ConfigError("store.token", "store.user is set too; one of them is enough")
    schemes = {server.startswith(TLS_SCHEME) for server in store.servers}
    if len(schemes) > 1:
        yield ConfigError("store.servers", "either all of them are tls:// or none is")
    for name, file in files.items():
        if file and not store.has_tls:
            yield ConfigError(
                f"store.{name}", "it is for TLS; did you mean tls:// instead of nats:// in store.servers?"
            )
        elif file:
            yield from _missing_file(f"store.{name}", file)
    if bool(store.cert) != bool(store.key):
        missing, there = ("key", "cert") if store.cert else ("cert", "key")
        yield ConfigError(f"store.{missing}", f"store.{there} needs it")


def _journal_conflicts(journal: Journal) -> Iterator[ConfigError]:
    least = journal.shards * SHARD_BYTES_MIN
    if journal.max_bytes < least:
        yield ConfigError(
            "journal.max_bytes",
            f"{journal.shards} shards need at least {render_size(least)}, got {render_size(journal.max_bytes)}",
        )


def _missing_files(path: str, certificate: Certificate) -> Iterator[ConfigError]:
    yield from _missing_file(f"{path}.cert", certificate.cert)
    yield from _missing_file(f"{path}.key", certificate.key)


def _missing_file(path: str, file: str) -> Iterator[ConfigError]:
    if not Path(file).is_file():
        yield ConfigError(path, f"no such file: {file}")


def _bind_conflicts(config: Config) -> Iterator[ConfigError]:
    active = {f"listeners.{name}": listener for name, listener in config.listeners.items() if listener.enable}
    sockets = {path: listener.bind for path, listener in active.items() if listener.type == "unix"}
    binds = {path: listener.bind for path, listener in active.items() if listener.type != "unix"}
    if config.http.enable:
        binds["http"] = config.http.bind
    for (first, one), (second, other) in combinations(binds.items(), 2):
        try:
            collide = parse_address(one).collides(parse_address(other))
        except ValueError:
            continue  # reported for its listener
        if collide:
            yield ConfigError(f"{second}.bind", f"{other} is taken already by {first}.bind")
    for (first, one), (second, other) in combinations(sockets.items(), 2):
        if Path(one).absolute() == Path(other).absolute():
            yield ConfigError(f"{second}.bind", f"{other} is taken already by {first}.bind")


def unprotected(config: Config, authenticator: bool = False, login: bool = False) -> Iterator[ConfigError]:
    """Addresses that other machines could reach while nobody is asked who they are.

    ``authenticator``: something checks MQTT clients; ``login``: something checks users of the HTTP server.
    """
    for name, listener in config.listeners.items():
        if authenticator or config.access.anonymous or not listener.enable or listener.type == "unix":
            continue
        try:
            exposed = not listener.address.is_loopback
        except ValueError:
            continue  # reported for its listener
        if exposed:
            yield ConfigError(
                f"listeners.{name}.bind",
                f"{listener.bind} is open to other machines and there is no authenticator; bind it to 127.0.0.1, "
                "or set access.anonymous = true to let everybody in",
            )
    if config.http.enable and not login and not config.http.address.is_loopback:
        yield ConfigError(
            "http.bind",
            f"{config.http.bind} is open to other machines and there is no login; bind it to 127.0.0.1 and put a proxy "
            "with a login in front",
        )
