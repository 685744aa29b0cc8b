"""What is kept, and where: ``[store]`` and ``[journal]``."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, SecretStr

from brookmq.base.config.section import Limit, Section, setting
from brookmq.base.config.values import (
    DAY,
    GIB,
    KIB,
    MIB,
    MINUTE,
    SECOND,
    UINT16_MAX,
    Duration,
    Size,
    TopicFilter,
    parse_address,
)

SHARD_BYTES_MIN = 16 * MIB  # room for the largest record, twice

PLAIN_SCHEME = "nats://"
TLS_SCHEME = "tls://"


def _check_server(text: str) -> str:
    """``tls://HOST:PORT``; who we are there is said by keys of their own, so that no log shows a password."""
    if "@" in text:
        raise ValueError("a server's address has no user in it; set store.user and store.password")
    if not text.startswith((PLAIN_SCHEME, TLS_SCHEME)):
        raise ValueError(f"expected {TLS_SCHEME}HOST:PORT or {PLAIN_SCHEME}HOST:PORT, got {text!r}")
    parse_address(text.partition("://")[2])
    return text


StoreAddress = Annotated[str, AfterValidator(_check_server)]


class Store(Section):
    """``[store]``: the engine that keeps what is acknowledged."""

    servers: list[StoreAddress] = setting(
        [],
        "Addresses (tls://HOST:PORT, or nats://HOST:PORT without TLS) of a NATS JetStream that somebody else runs; "
        "empty, and the node starts and watches its own. With three or more, everything is kept three times.",
        max_length=16,
    )
    user: str = setting("", "User at these servers; empty for none.", max_length=255)
    password: SecretStr = setting(SecretStr(""), "Password of that user.")
    token: SecretStr = setting(SecretStr(""), "Token for these servers, instead of user and password.")
    reader_user: str = setting(
        "",
        "User at these servers for programs that read the journal from them, such as Spark; empty for none. "
        "A store of the node's own makes such users itself.",
        max_length=255,
    )
    reader_password: SecretStr = setting(SecretStr(""), "Password of that user.")
    ca: str = setting(
        "",
        "File with the certificates (PEM) that those of tls:// servers are checked against; empty for the system's.",
    )
    cert: str = setting("", "File with the certificate chain (PEM) that is shown to tls:// servers; empty for none.")
    key: str = setting("", "File with the private key (PEM) of that certificate.")
    key_password: SecretStr = setting(SecretStr(""), "Password of that private key, when it has one.")
    binary: str = setting(
        "", "The nats-server to start; empty for the one that is installed with BrookMQ, or else one on PATH."
    )
    port: int = setting(0, "Port of the node's own store, on 127.0.0.1; 0 for any free one.", ge=0, le=UINT16_MAX)
    wait: Duration = setting(
        10 * SECOND,
        "How long what needs the store waits while it does not answer; longer than an election of its servers.",
        limit=Limit("MQTT 5 clients get 0x97, MQTT 3 clients get no acknowledgement and are closed."),
        ge=1,
        le=10 * MINUTE,
    )

    @property
    def has_tls(self) -> bool:
        """Whether the servers are reached by TLS; all of them are, or none."""
        return any(server.startswith(TLS_SCHEME) for server in self.servers)


class Journal(Section):
    """``[journal]``: messages that are kept."""

    capture: list[TopicFilter] = setting(
        [],
        "Topic filters whose messages are kept for replay, whoever subscribes; QoS 0 at best effort.",
        max_length=1000,
    )
    shards: int = setting(
        4, "Parts of the journal, by topic; they are chosen once, when a data folder is new.", ge=1, le=12
    )
    max_age: Duration = setting(
        7 * DAY,
        "How long a message is kept.",
        limit=Limit("It is removed; a client that was away longer has lost it, which is counted and alarmed."),
        ge=MINUTE,
        le=3650 * DAY,
    )
    max_bytes: Size = setting(
        16 * GIB,
        "Room that the journal takes on disk, over all shards; servers of your own have to grant it.",
        limit=Limit("The oldest messages are removed, as with max_age."),
        ge=SHARD_BYTES_MIN,
    )
    readers_wait: Duration = setting(
        7 * DAY,
        "How long a declared reader that was not heard of holds back max_age; what it has not read stays until then.",
        limit=Limit("Its messages are removed like all others; it is shown until it is dropped."),
        ge=MINUTE,
        le=3650 * DAY,
    )
    waiting_bytes_max: Size = setting(
        4 * MIB,
        "Bytes that wait in one shard for the store.",
        limit=Limit("Publishers to it are not read from until there is room."),
        ge=256 * KIB,
        le=GIB,
    )
    cache_bytes_max: Size = setting(
        64 * MIB,
        "Memory for the newest messages and for those that clients which come back are reading.",
        limit=Limit("The least recently used are read from the store again."),
        ge=MIB,
        le=64 * GIB,
    )
