"""``brookmq cluster``: make a data folder a core of a cluster, before its first start."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from brookmq.base import logs
from brookmq.base.config import Config, load
from brookmq.base.errors import OperationError
from brookmq.cli.failure import Failure
from brookmq.cli.start import overrides_of

if TYPE_CHECKING:
    from brookmq.store.membership import Membership
    from brookmq.store.secret import ClusterSecret

_STDIN = "-"


@click.group()
def cluster() -> None:
    """Make nodes the cores of a cluster, whose stores keep everything three times.

    A cluster has a secret. `init` makes it on the first core; `join` takes it on each of the others. Nobody without it
    gets into the store. Both are done once, in an empty data folder, before the node's first start.

    \b
    Examples:
      brookmq cluster init --name a@10.0.0.1 --core-nodes a@10.0.0.1 \\
          --core-nodes b@10.0.0.2 --core-nodes c@10.0.0.3          on the first core
      brookmq cluster secret | ssh b brookmq cluster join - --name b@10.0.0.2
    """


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """Options as `brookmq start` has them: the same configuration says who this node is and where its data is."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        click.option("--data-dir", metavar="FOLDER", help="Folder for what the node keeps on disk."),
        click.option(
            "--config",
            "file",
            type=click.Path(path_type=Path),
            envvar="BROOKMQ_CONFIG",
            metavar="FILE",
            help="TOML file to read.",
        ),
    ):
        command = option(command)
    return command


_name = click.option("--name", metavar="NAME@HOST", help="Which core this is.")
_listen = click.option(
    "--listen",
    metavar="HOST",
    default="",
    help="Address to bind the store's two ports to; without it the HOST of the name. 0.0.0.0 or :: for all.",
)


@cluster.command(short_help="Make a new cluster, with this node as its first core.")
@_common
@_name
@click.option(
    "--core-nodes",
    multiple=True,
    metavar="NAME@HOST[:PORT/ROUTE_PORT]",
    help="A core, this one too; given once for each. The ports are 4222 for clients of the store and 6222 for routes.",
)
@click.option("--cluster", "cluster_name", metavar="NAME", help="Name of the cluster.")
@_listen
def init(
    file: Path | None,
    data_dir: str | None,
    as_json: bool,
    name: str | None,
    core_nodes: tuple[str, ...],
    cluster_name: str | None,
    listen: str,
) -> None:
    """Make a new cluster with this node as one of its cores.

    All cores are named now: 3, 5 or 7 of them, each by the address under which the others reach it. Options stand above
    node.name, node.core_nodes, node.data_dir and cluster.name of the configuration. The secret is written to the file
    `cluster/secret` in the data folder: whoever has it can join, so copy it to the other cores over a safe way and
    nowhere else.

    \b
    Examples:
      brookmq cluster init --name a@10.0.0.1 --core-nodes a@10.0.0.1 --core-nodes b@10.0.0.2 \\
          --core-nodes c@10.0.0.3
      brookmq cluster init --config brookmq.toml --listen 0.0.0.0
    """
    config = _config(file, name, data_dir, core_nodes, cluster_name)
    try:
        from brookmq.store.core_address import parse_core
        from brookmq.store.joining import init_cluster

        if not config.node.core_nodes:
            raise OperationError("name the cores, this one too: --core-nodes NAME@HOST for each, or node.core_nodes")
        cores = [parse_core(text) for text in config.node.core_nodes]
        path = Path(config.node.data_dir)
        membership, secret = init_cluster(path, config.cluster.name, config.node.name, cores, listen)
    except OperationError as error:
        raise Failure(str(error)) from error
    if as_json:
        click.echo(json.dumps({**_described(membership), "secret": str(secret)}))
        return
    click.echo(f"cluster {membership.cluster}: this is its core {membership.node.name}")
    click.echo(f"the secret is in {secret}; whoever has it can join")
    click.echo("next, on each of the other cores, with a copy of that file:")
    for core in membership.cores:
        if core != membership.node:
            click.echo(f"  brookmq cluster join secret --name {core.name}")
    click.echo("then `brookmq start` on the core that clients connect to, `brookmq cluster store` on the others")


@cluster.command(short_help="Make this node a core of a cluster, with its secret.")
@click.argument("secret", metavar="SECRET")
@_common
@_name
@_listen
def join(secret: str, file: Path | None, data_dir: str | None, as_json: bool, name: str | None, listen: str) -> None:
    """Make this node one of the cores that were named at `brookmq cluster init`.

    SECRET is the file with the cluster's secret, or - to read it from standard input. The node gets a certificate of
    its own; the secret is not kept. Joining again under the same name is allowed and makes the certificate anew: it
    mends a folder whose files were damaged, and puts an empty folder in the place of a lost one.

    \b
    Examples:
      brookmq cluster join secret --name b@10.0.0.2
      ssh a brookmq cluster secret | brookmq cluster join - --name b@10.0.0.2 --data-dir /var/lib/brookmq
    """
    config = _config(file, name, data_dir)
    try:
        from brookmq.store.joining import join_cluster

        membership = join_cluster(Path(config.node.data_dir), _read(secret), config.node.name, listen)
    except OperationError as error:
        raise Failure(str(error)) from error
    if as_json:
        click.echo(json.dumps(_described(membership)))
        return
    click.echo(f"cluster {membership.cluster}: this is its core {membership.node.name}")
    click.echo("run its store with `brookmq cluster store`; at the first start it waits for all cores:")
    for core in membership.cores:
        click.echo(f"  {core.name}  store {core.store}, routes {core.route}")


@cluster.command(short_help="Run this core's store, without a broker.")
@_common
@_name
def store(file: Path | None, data_dir: str | None, as_json: bool, name: str | None) -> None:
    """Run the store of this core until SIGTERM or Ctrl-C, and no broker.

    For the cores that only keep copies. Once a majority of the cores is there it prints one line:
    `brookmq store ready name=… store=HOST:PORT`.

    \b
    Example:
      brookmq cluster store --name b@10.0.0.2 --data-dir /var/lib/brookmq
    """
    config = _config(file, name, data_dir)
    try:
        logs.configure(config.log)
        from brookmq.node.store_only import run

        sys.exit(run(config, as_json))
    except OperationError as error:
        raise Failure(str(error)) from error


@cluster.command(short_help="Print the cluster's secret.")
@_common
def secret(file: Path | None, data_dir: str | None, as_json: bool) -> None:
    """Print the cluster's secret, where `brookmq cluster init` ran: one line, for `brookmq cluster join -`.

    \b
    Example:
      brookmq cluster secret | ssh b brookmq cluster join - --name b@10.0.0.2
    """
    config = _config(file, None, data_dir)
    try:
        from brookmq.store.joining import read_secret
        from brookmq.store.membership import secret_path
        from brookmq.store.secret import encode_secret

        path = secret_path(Path(config.node.data_dir))
        if not path.exists():
            raise OperationError(f"there is no {path}: the secret is in the folder where `brookmq cluster init` ran")
        line = encode_secret(read_secret(path))
    except OperationError as error:
        raise Failure(str(error)) from error
    click.echo(json.dumps({"secret": line}) if as_json else line)


def _config(
    file: Path | None,
    name: str | None,
    data_dir: str | None,
    core_nodes: tuple[str, ...] = (),
    cluster_name: str | None = None,
) -> Config:
    overrides = overrides_of(name=name, core_nodes=core_nodes, data_dir=data_dir)
    if cluster_name is not None:
        overrides["cluster.name"] = cluster_name
    try:
        config = load(file, os.environ, overrides)
        if config.store.servers:
            raise OperationError("store.servers names a store that others run: its nodes need no cluster of their own")
    except OperationError as error:
        raise Failure(str(error)) from error
    return config


def _read(source: str) -> ClusterSecret:
    from brookmq.store.joining import read_secret
    from brookmq.store.secret import CHARACTERS_MAX, decode_secret

    if source == _STDIN:
        return decode_secret(sys.stdin.read(CHARACTERS_MAX + 1))
    path = Path(source)
    found = read_secret(path)
    if path.stat().st_mode & 0o077:
        click.echo(f"brookmq: {path} can be read by others on this machine; chmod 600 it, or delete it", err=True)
    return found


def _described(membership: Membership) -> dict[str, Any]:
    return {
        "cluster": membership.cluster,
        "node": membership.node.name,
        "data_dir": str(membership.path.parent),
        "listen": membership.listen,
        "cores": [{"name": core.name, "store": core.store, "routes": core.route} for core in membership.cores],
    }
