"""Whom the data in a store's folder belongs to: a lone node, or one core of one cluster. It never changes.

A server that has data and is started as something else deletes it: streams of a lone server are orphans to a cluster
("Detected orphaned stream, will cleanup"; seen), and so are those of another cluster; a core under another name is a
new core, and its old self is missing for ever. So the first start writes down what the folder is, and every other
start, `cluster init` and `cluster join` compare.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from brookmq.base.errors import OperationError
from brookmq.store.folder import DataFolder, write_file
from brookmq.store.membership import Membership

FORMAT = 1


class Belonging(NamedTuple):
    """All empty for a lone node."""

    cluster: str = ""
    identity: str = ""
    node: str = ""


LONE = Belonging()


def belonging_of(membership: Membership | None) -> Belonging:
    """What data has to be that is started with this membership."""
    if membership is None:
        return LONE
    return Belonging(membership.cluster, membership.identity, membership.node.name)


def settle(folder: DataFolder, membership: Membership | None) -> None:
    """Call it before each start of the server: writes down whose the data will be, or OperationError."""
    wanted = belonging_of(membership)
    check(folder, wanted)
    file = _file(folder)
    if not file.exists():
        write_file(file, json.dumps({"format": FORMAT, **wanted._asdict()}) + "\n")


def check(folder: DataFolder, wanted: Belonging) -> None:
    """Whether data of this kind may be in the folder; OperationError says what is there instead and what to do."""
    known = _read(folder)
    if known is None or known == wanted:
        return
    path = folder.path
    if known == LONE:
        raise OperationError(
            f"{path} has the data of a lone node, which a cluster would delete; growing a node into a cluster is not "
            "possible yet: choose an empty folder with --data-dir"
        )
    if wanted == LONE:
        raise OperationError(
            f"{path} has the data of {known.node} in the cluster {known.cluster}, and its membership is gone; "
            "run `brookmq cluster join` for this folder again with the cluster's secret"
        )
    other = "" if known.cluster != wanted.cluster or known.identity == wanted.identity else ", another one of that name"
    raise OperationError(
        f"{path} has the data of {known.node} in the cluster {known.cluster}{other}; it cannot become {wanted.node} in "
        f"the cluster {wanted.cluster}: choose an empty folder with --data-dir"
    )


def _read(folder: DataFolder) -> Belonging | None:
    """None: there is no data yet."""
    file = _file(folder)
    try:
        known = json.loads(file.read_text("utf-8"))
        return Belonging(str(known["cluster"]), str(known["identity"]), str(known["node"]))
    except FileNotFoundError:
        return LONE if _has_data(folder.store_path / "jetstream") else None
    except (ValueError, TypeError, LookupError):
        raise OperationError(f"{file} is damaged: it cannot be told whose data {folder.path} has") from None


def _has_data(path: Path) -> bool:
    try:
        return any(path.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return False


def _file(folder: DataFolder) -> Path:
    return folder.store_path / "belongs-to"
