"""The secret of a cluster: whoever has it can make a member of any machine; nobody else gets in.

One line of text, so that it can be copied as a file or pasted: a head with its format number, then base64 of the
compressed fields. It holds the authority with its key, the passwords of routes and of cores, and the list of cores: so
every member knows the same ones from its first start, which is what keeps two halves of a new cluster from starting
each on its own. A member takes from it what it needs and does not keep it; a stolen disk of a member has no
authority's key.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from brookmq.base.errors import OperationError
from brookmq.store.certificates import KeyPair, check_authority, make_authority
from brookmq.store.core_address import CoreAddress, check_cores

FORMAT = 1
HEAD = "brookmq-cluster-secret"
PASSWORD_BYTES = 32
CHARACTERS_MAX = 65_536  # a real one has about 1,500
FIELDS_BYTES_MAX = 1024 * 1024  # once decompressed


@dataclass(frozen=True, slots=True)
class ClusterSecret:
    """``identity`` tells clusters of the same name apart."""

    cluster: str
    identity: str
    cores: tuple[CoreAddress, ...]
    authority: KeyPair = field(repr=False)
    core_password: str = field(repr=False)
    route_password: str = field(repr=False)


def make_secret(cluster: str, cores: Sequence[CoreAddress]) -> ClusterSecret:
    """The secret of a new cluster."""
    check_cores(cores)
    return ClusterSecret(
        cluster,
        secrets.token_hex(8),
        tuple(cores),
        make_authority(cluster),
        secrets.token_urlsafe(PASSWORD_BYTES),
        secrets.token_urlsafe(PASSWORD_BYTES),
    )


def encode_secret(secret: ClusterSecret) -> str:
    """The one line, without its end."""
    fields = {
        "cluster": secret.cluster,
        "identity": secret.identity,
        "cores": [list(core) for core in secret.cores],
        "authority": list(secret.authority),
        "core_password": secret.core_password,
        "route_password": secret.route_password,
    }
    body = base64.urlsafe_b64encode(zlib.compress(json.dumps(fields).encode(), 9))
    return f"{HEAD}:{FORMAT}:{body.decode()}"


def decode_secret(text: str) -> ClusterSecret:
    """OperationError says what is wrong, without a word of the secret."""
    head, _, rest = text.strip().partition(":")
    number, _, body = rest.partition(":")
    if head != HEAD or not number.isdecimal():
        raise OperationError(
            "this is not the secret of a cluster; `brookmq cluster secret` prints it on the first core"
        )
    if int(number) != FORMAT:
        raise OperationError(
            f"the cluster's secret has format {number}, and this BrookMQ knows format {FORMAT}: "
            "install the version that made it"
        )
    if len(text) > CHARACTERS_MAX:
        raise _damaged()
    try:
        unpacking = zlib.decompressobj()
        packed = base64.b64decode(body, altchars=b"-_", validate=True)
        fields = json.loads(unpacking.decompress(packed, FIELDS_BYTES_MAX))
        if not unpacking.eof:
            raise _damaged()
        secret = ClusterSecret(
            str(fields["cluster"]),
            str(fields["identity"]),
            tuple(CoreAddress(str(core[0]), str(core[1]), int(core[2]), int(core[3])) for core in fields["cores"]),
            KeyPair(*map(str, fields["authority"])),
            str(fields["core_password"]),
            str(fields["route_password"]),
        )
    except (binascii.Error, zlib.error, ValueError, TypeError, LookupError):
        raise _damaged() from None
    check_cores(secret.cores)
    check_authority(secret.authority)
    return secret


def _damaged() -> OperationError:
    return OperationError("the cluster's secret is damaged: copy it again, the whole line")
