"""What has to be there before a store's process can start: program, credentials, settings. All of it blocks.

Nothing is written before the folder is known to be the one of a store of this kind (see `belonging`).
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from brookmq.base.errors import OperationError
from brookmq.store.belonging import settle
from brookmq.store.binary import Binary, find_binary
from brookmq.store.folder import ROOM_BYTES_MIN, DataFolder
from brookmq.store.membership import Membership
from brookmq.store.settings_file import Credentials, ServerSettings, keep_credentials, write_settings

SETTINGS = "nats.conf"
PORTS = "ports"


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What the configuration may say. ``port`` None: any free one, or the one that the cluster knows."""

    server_name: str
    binary: str | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    room_bytes_min: int = ROOM_BYTES_MIN


@dataclass(frozen=True, slots=True)
class Prepared:
    """``tls`` is for clients of a member."""

    binary: Binary
    settings: ServerSettings
    tls: ssl.SSLContext | None

    @property
    def credentials(self) -> Credentials:
        return self.settings.credentials


def prepare(folder: DataFolder, options: StoreOptions, membership: Membership | None) -> Prepared:
    """OperationError for what an operator has to change, OSError for what the disk refuses."""
    binary = find_binary(options.binary)
    if membership is not None:
        _check_options(options, membership)
    settle(folder, membership)
    path = folder.store_path
    credentials = membership.credentials if membership else keep_credentials(path / "credentials")
    ports = path / PORTS
    ports.mkdir(mode=0o700, exist_ok=True)
    settings = ServerSettings(
        options.server_name,
        path,
        ports,
        credentials,
        membership.listen if membership else options.host,
        membership.node.port if membership else options.port,
        membership.settings() if membership else None,
    )
    write_settings(path / SETTINGS, settings, binary)
    return Prepared(binary, settings, membership.tls_context() if membership else None)


def _check_options(options: StoreOptions, membership: Membership) -> None:
    """The configuration must not say anything else than what the other cores were told."""
    node = membership.node
    if options.server_name != node.name:
        raise OperationError(
            f"this folder is the core {node.name} of the cluster {membership.cluster}, and node.name is "
            f"{options.server_name}: set it to {node.name}, or choose another folder with --data-dir"
        )
    if options.port not in (None, node.port):
        raise OperationError(
            f"store.port is {options.port}, and the cluster {membership.cluster} knows {node.name} at port "
            f"{node.port}: remove store.port"
        )
