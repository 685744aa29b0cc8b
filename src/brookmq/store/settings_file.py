"""Writes the store's settings (`nats.conf`) and keeps its credentials.

Everything that decides about durability or limits stands here, in one place, with its reason. A lone store listens on
loopback and asks for a password; a member of a cluster (`ClusterSettings`) listens where the others reach it, and asks
for a certificate of the cluster's authority as well, on both of its ports. The accounts are the same in both: their
names are part of the paths on disk.

Readers of the journal outside of the node (see `readers`) have an account of their own, with nothing in it but a way to
ask for records of the journal. In the node's account permissions would not be enough: whoever may ask for a record also
says where the answer goes, and with a stream's subject as that place the store itself would append to the journal.
"""

from __future__ import annotations

import json
import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from brookmq.base.errors import OperationError
from brookmq.store.binary import ANSWER_SECONDS_MAX, Binary
from brookmq.store.core_address import joined
from brookmq.store.diagnosis import parse
from brookmq.store.folder import write_file
from brookmq.store.journal.seeking import stream_name

ACCOUNT = "BROOKMQ"
READERS_ACCOUNT = "READERS"
READ = "$JS.API.DIRECT.GET"
READER_INBOX = "_INBOX.reader"  # where answers to readers go
SHARDS_MAX = 12  # that a journal can have (`journal.shards`)
USER = "core"
PASSWORD_BYTES = 32

PAYLOAD_BYTES_MAX = 8 * 1024 * 1024  # one batch is 64 KiB; a single MQTT message of the largest size must fit too
PENDING_BYTES_MAX = 256 * 1024 * 1024  # to a reader that is behind, before it is cut off
MEMORY_BYTES_MAX = 256 * 1024 * 1024  # for streams in memory: leases only
# Without a figure the server takes three quarters of what is free *at each start*, which shrinks as the store grows.
# Retention limits the journal; this one is out of its way.
FILE_BYTES_MAX = 1024**5
ROUTE_REPORTS_EVERY = 60  # attempts to reach a member that is away, one a second: a line in the log once a minute
_READER = "      { user: "  # what a line with a reader begins with
TLS_SECONDS_MAX = 5  # for a handshake: one that never comes must not hold a socket


class Credentials(NamedTuple):
    """How the node, or a reader, proves to the store who it is."""

    user: str
    password: str


class TlsFiles(NamedTuple):
    """Of a member: its certificate, its key, and the authority that everybody's certificate has to be of."""

    certificate: Path
    key: Path
    authority: Path


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """What makes a store a member. Addresses are HOST:PORT; the advertised ones are those in its certificate."""

    name: str
    listen: str
    advertise: str
    client_advertise: str
    credentials: Credentials  # of routes
    routes: tuple[str, ...]  # all members, this one too
    tls: TlsFiles


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What differs between stores. ``port`` None: any free one, told in a file in ``ports_path``."""

    server_name: str
    store_path: Path
    ports_path: Path
    credentials: Credentials
    host: str = "127.0.0.1"
    port: int | None = None
    cluster: ClusterSettings | None = None
    readers: tuple[Credentials, ...] = ()
    payload_bytes_max: int = PAYLOAD_BYTES_MAX
    pending_bytes_max: int = PENDING_BYTES_MAX
    memory_bytes_max: int = MEMORY_BYTES_MAX
    file_bytes_max: int = FILE_BYTES_MAX


def render(settings: ServerSettings) -> str:
    """The settings in the server's own language."""
    user, password = settings.credentials
    return f"""\
# Written by BrookMQ at start; changes are overwritten.
server_name: {_quoted(settings.server_name)}
listen: {_quoted(joined(settings.host, settings.port or -1))}
ports_file_dir: {_quoted(str(settings.ports_path))}
max_payload: {settings.payload_bytes_max}
max_pending: {settings.pending_bytes_max}
write_deadline: "10s"
ping_interval: "5s"
ping_max: 2
jetstream {{
  store_dir: {_quoted(str(settings.store_path))}
  sync_interval: always  # what is acknowledged is on the disk
  max_file_store: {settings.file_bytes_max}
  max_memory_store: {settings.memory_bytes_max}
  limits {{ batch {{ max_msgs: 10000 }} }}
}}
system_account: SYS
accounts {{
  SYS {{ users: [] }}
  {ACCOUNT} {{
    jetstream: enabled
    users: [{{ user: {_quoted(user)}, password: {_quoted(password)} }}]
    exports: [{_render_services("{{ service: {}, response_type: stream, accounts: [{}] }}", READERS_ACCOUNT)}]
  }}
  {READERS_ACCOUNT} {{
    imports: [{_render_services("{{ service: {{ subject: {}, account: {} }} }}", ACCOUNT)}]
    users: [
{_render_readers(settings.readers)}    ]
  }}
}}
{_render_cluster(settings.cluster) if settings.cluster else ""}"""


def _render_services(form: str, account: str) -> str:
    """What readers may ask for, in a form with places for a subject and the account on the other side."""
    subjects = [f"{READ}.{stream_name(shard)}{below}" for shard in range(SHARDS_MAX) for below in ("", ".>")]
    return ", ".join(form.format(_quoted(subject), account) for subject in subjects)


def _render_readers(readers: tuple[Credentials, ...]) -> str:
    permissions = f'publish: ["{READ}.>"], subscribe: ["{READER_INBOX}.>"]'
    return "".join(
        f"{_READER}{_quoted(user)}, password: {_quoted(password)}, permissions: {{ {permissions} }} }}\n"
        for user, password in readers
    )


def without_readers(text: str) -> str:
    """Settings as they would be if nobody had been let in."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(_READER))


def _render_cluster(cluster: ClusterSettings) -> str:
    user, password = cluster.credentials
    routes = ", ".join(_quoted(f"tls://{user}:{password}@{route}") for route in cluster.routes)
    return f"""\
client_advertise: {_quoted(cluster.client_advertise)}
connect_error_reports: {ROUTE_REPORTS_EVERY}
reconnect_error_reports: {ROUTE_REPORTS_EVERY}
{_render_tls(cluster.tls)}
cluster {{
  name: {_quoted(cluster.name)}
  listen: {_quoted(cluster.listen)}
  advertise: {_quoted(cluster.advertise)}
  authorization {{ user: {_quoted(user)}, password: {_quoted(password)}, timeout: {TLS_SECONDS_MAX} }}
  {_render_tls(cluster.tls)}
  routes: [{routes}]
  compression: off
  ping_interval: "2s"  # a silent member is noticed within an election's time
  pool_size: 3
}}
"""


def _render_tls(files: TlsFiles) -> str:
    certificate, key, authority = (_quoted(str(path)) for path in files)
    return (
        f"tls {{ cert_file: {certificate}, key_file: {key}, ca_file: {authority}, "
        f'verify: true, min_version: "1.3", timeout: {TLS_SECONDS_MAX} }}'
    )


def write_settings(path: Path, settings: ServerSettings, binary: Binary) -> None:
    """Write the file if it has to change, and let the server check it: OperationError with its words if it refuses.

    A file that is right already is left alone: a node must be able to start on a disk that is full. There also readers
    that a node which was killed had let in stay until there is room.
    """
    text = render(settings)
    try:
        known = path.read_text("utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        known = ""
    if known == text:
        return
    try:
        write_file(path, text)
    except OSError:
        if without_readers(known) != text:
            raise
        return
    try:
        check_settings(path, binary)
    except OperationError:
        path.unlink()  # or the next start would take it for checked
        raise


def check_settings(path: Path, binary: Binary) -> None:
    """`nats-server -t`: whether the server would take this file."""
    try:
        answer = subprocess.run(  # noqa: S603  the program that the operator chose
            [binary.path, "-t", "-c", path],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OperationError(f"{binary.path} -t gave no answer within {ANSWER_SECONDS_MAX:.0f} s") from None
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines() or [f"it ended with code {answer.returncode}"]
        raise OperationError(f"the store refuses its settings in {path}: {parse(lines[-1]).text}")


def keep_credentials(path: Path) -> Credentials:
    """The credentials in this file, made at the first start; nobody but this user can read them."""
    try:
        known = json.loads(path.read_text("utf-8"))
        return Credentials(str(known["user"]), str(known["password"]))
    except FileNotFoundError:
        made = Credentials(USER, secrets.token_urlsafe(PASSWORD_BYTES))
    except (ValueError, TypeError, KeyError):
        raise OperationError(f"{path} is damaged; delete it and start again: it is made anew") from None
    write_file(path, json.dumps(made._asdict()) + "\n")
    return made


def _quoted(text: str) -> str:
    if not text.isprintable():
        raise OperationError(f"the store's settings cannot hold {text!r}: it has characters that are not printable")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
