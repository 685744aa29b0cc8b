"""That a data folder is a core of a cluster: made by `brookmq cluster init` and `join`, read at every start.

    cluster/membership      who this core is, who the others are, the passwords; written last: without it, no member
    cluster/ca.crt          the cluster's authority: whom to trust
    cluster/node.crt, .key  this core's own certificate
    cluster/secret          where `init` ran, to be copied to the others; a core does not need it to run

All of it is for this user only. Whether the data in the folder may be started with this membership is the question of
`belonging`.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from brookmq.base.errors import OperationError
from brookmq.store.core_address import CoreAddress, joined
from brookmq.store.folder import DataFolder, trouble_with, write_file
from brookmq.store.settings_file import USER, ClusterSettings, Credentials, TlsFiles
from brookmq.store.tls import hush

if TYPE_CHECKING:
    from brookmq.store.secret import ClusterSecret

FORMAT = 1
ROUTE_USER = "route"
REPLICAS = 3  # of every stream: one of them may be lost

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  not bound to here


@dataclass(frozen=True, slots=True)
class Membership:
    """``listen`` is the address that its ports are bound to; ``path`` the folder `cluster`."""

    cluster: str
    identity: str
    node: CoreAddress
    cores: tuple[CoreAddress, ...]
    listen: str
    core_password: str = field(repr=False)
    route_password: str = field(repr=False)
    path: Path

    @property
    def credentials(self) -> Credentials:
        return Credentials(USER, self.core_password)

    @property
    def own_host(self) -> str:
        """Where this node reaches its own store: without a name server, and without leaving the machine if it can."""
        return _ANYWHERE.get(self.listen, self.listen)

    @property
    def majority(self) -> int:
        return len(self.cores) // 2 + 1

    @property
    def tls_files(self) -> TlsFiles:
        return TlsFiles(self.path / "node.crt", self.path / "node.key", self.path / "ca.crt")

    def tls_context(self) -> ssl.SSLContext:
        """For connections to stores of this cluster; OperationError if the files are gone or damaged."""
        files = self.tls_files
        try:
            context = ssl.create_default_context(cafile=files.authority)
            context.load_cert_chain(files.certificate, files.key)
        except (OSError, ssl.SSLError) as error:
            raise OperationError(
                f"the certificates in {self.path} cannot be read ({error}); "
                "run `brookmq cluster join` for this folder again, they are made anew"
            ) from None
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        hush()
        return context

    def settings(self) -> ClusterSettings:
        """The part of the server's settings that makes it a member."""
        return ClusterSettings(
            name=self.cluster,
            listen=joined(self.listen, self.node.route_port),
            advertise=self.node.route,
            client_advertise=self.node.store,
            credentials=Credentials(ROUTE_USER, self.route_password),
            # This core too: the number of routes is the number of stores that have to be there before empty ones elect
            # a leader. With one fewer, two that lost their disks would begin anew, and the third's data be gone (seen).
            routes=tuple(core.route for core in self.cores),
            tls=self.tls_files,
        )


def read_membership(folder: DataFolder) -> Membership | None:
    """The membership of this folder; None for a lone node's."""
    path = folder.path / "cluster"
    file = path / "membership"
    try:
        known = json.loads(file.read_text("utf-8"))
        if known["format"] != FORMAT:
            raise OperationError(
                f"{file} has format {known['format']}, and this BrookMQ knows format {FORMAT}: start the version "
                "that wrote it"
            )
        cores = tuple(CoreAddress(*core) for core in known["cores"])
        return Membership(
            known["cluster"],
            known["identity"],
            core_named(cores, known["node"]),
            cores,
            known["listen"],
            known["core_password"],
            known["route_password"],
            path,
        )
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, LookupError):
        raise OperationError(f"{file} is damaged; run `brookmq cluster join` for this folder again") from None
    except OSError as error:
        raise trouble_with(folder.path, error) from None


def write_membership(folder: DataFolder, secret: ClusterSecret, node: str, listen: str = "") -> Membership:
    """Make this folder the core ``node`` of the cluster, with a new certificate. Does not ask whether it may be."""
    from brookmq.store.certificates import issue  # not needed by a node that starts

    core = core_named(secret.cores, node)
    membership = Membership(
        secret.cluster,
        secret.identity,
        core,
        secret.cores,
        listen or core.host,
        secret.core_password,
        secret.route_password,
        folder.path / "cluster",
    )
    own = () if membership.listen in _ANYWHERE else (membership.listen,)
    pair = issue(secret.authority, core.name, (core.host, *own, *_LOOPBACK))
    files = membership.tls_files
    try:
        membership.path.mkdir(mode=0o700, exist_ok=True)
        write_file(files.authority, secret.authority.certificate)
        write_file(files.key, pair.key)
        write_file(files.certificate, pair.certificate)
        write_file(membership.path / "membership", _encoded(membership))
    except OSError as error:
        raise trouble_with(folder.path, error) from None
    return membership


def secret_path(folder: Path) -> Path:
    """Where `init` leaves the cluster's secret."""
    return folder / "cluster" / "secret"


def _encoded(membership: Membership) -> str:
    fields = {
        "format": FORMAT,
        "cluster": membership.cluster,
        "identity": membership.identity,
        "node": membership.node.name,
        "cores": [list(core) for core in membership.cores],
        "listen": membership.listen,
        "core_password": membership.core_password,
        "route_password": membership.route_password,
    }
    return json.dumps(fields, indent=1) + "\n"


def core_named(cores: Sequence[CoreAddress], name: str) -> CoreAddress:
    """OperationError if there is none of this name."""
    for core in cores:
        if core.name == name:
            return core
    names = ", ".join(core.name for core in cores)
    raise OperationError(f"{name} is none of the cluster's cores, which are {names}; say which one this is with --name")
