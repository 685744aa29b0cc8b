"""Making a data folder a core of a cluster: `brookmq cluster init` and `brookmq cluster join`.

The folder is locked meanwhile, so no node runs on it; and nothing is changed in a folder whose data belongs to somebody
else. Joining again with the same secret under the same name is allowed and makes the certificate anew: so a crash
between two files, a deleted one, or another address to listen on are mended by doing it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from brookmq.base.errors import OperationError
from brookmq.store.belonging import Belonging, belonging_of, check
from brookmq.store.core_address import CoreAddress, check_cores
from brookmq.store.folder import DataFolder, trouble_with, write_file
from brookmq.store.membership import Membership, core_named, read_membership, secret_path, write_membership
from brookmq.store.secret import ClusterSecret, decode_secret, encode_secret, make_secret

LOCK_WAIT_SECONDS = 0.5  # nothing is about to end here: a node that runs on the folder goes on running


def init_cluster(
    path: Path, cluster: str, node: str, cores: Sequence[CoreAddress], listen: str = ""
) -> tuple[Membership, Path]:
    """Make a new cluster with this folder as its core ``node``; the membership, and where the secret is."""
    check_cores(cores)
    with _locked(path) as folder:
        there = read_membership(folder)
        if there is not None:
            raise OperationError(
                f"{folder.path} is already the core {there.node.name} of the cluster {there.cluster}; "
                "`brookmq cluster secret` prints its secret for the others"
            )
        secret = make_secret(cluster, cores)
        core_named(cores, node)
        check(folder, Belonging(cluster, secret.identity, node))
        file = secret_path(folder.path)
        try:
            file.parent.mkdir(mode=0o700, exist_ok=True)
            write_file(file, encode_secret(secret) + "\n")  # first: a member without it could never get others
        except OSError as error:
            raise trouble_with(folder.path, error) from None
        return write_membership(folder, secret, node, listen), file


def join_cluster(path: Path, secret: ClusterSecret, node: str, listen: str = "") -> Membership:
    """Make this folder the core ``node`` of the secret's cluster."""
    with _locked(path) as folder:
        wanted = Belonging(secret.cluster, secret.identity, node)
        there = _readable_membership(folder)
        if there is not None and belonging_of(there) != wanted:
            raise OperationError(
                f"{folder.path} is already the core {there.node.name} of the cluster {there.cluster}; "
                "choose another folder with --data-dir"
            )
        check(folder, wanted)
        return write_membership(folder, secret, node, listen or (there.listen if there else ""))


def read_secret(path: Path) -> ClusterSecret:
    """The secret in a file."""
    try:
        return decode_secret(path.read_text("utf-8"))
    except FileNotFoundError:
        raise OperationError(f"there is no file {path}") from None
    except UnicodeDecodeError:
        raise OperationError(f"{path} is no secret of a cluster") from None
    except OSError as error:
        raise OperationError(f"{path} cannot be read: {error.strerror}") from None


def _readable_membership(folder: DataFolder) -> Membership | None:
    """One that is damaged counts as none: joining again is how it is mended, and the data has its own mark."""
    try:
        return read_membership(folder)
    except OperationError:
        return None


@contextmanager
def _locked(path: Path) -> Iterator[DataFolder]:
    folder = DataFolder.open(path, LOCK_WAIT_SECONDS)
    try:
        yield folder
    finally:
        folder.close()
