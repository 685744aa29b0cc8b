"""``brookmq start``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from brookmq.base import logs
from brookmq.base.config import Config, load
from brookmq.base.errors import OperationError
from brookmq.cli.failure import Failure


def overrides_of(
    name: str | None = None,
    role: str | None = None,
    core_nodes: tuple[str, ...] = (),
    data_dir: str | None = None,
    mqtt: str | None = None,
    http: str | None = None,
    log_level: str | None = None,
    log_format: str | None = None,
) -> dict[str, object]:
    """Options as values of the configuration. ``--mqtt`` stands for all listeners, so that nothing else is opened."""
    given: dict[str, object] = {
        "node.name": name,
        "node.role": role,
        "node.core_nodes": list(core_nodes) or None,
        "node.data_dir": data_dir,
        "http.bind": http,
        "http.enable": True if http else None,
        "listeners": {"default": {"type": "tcp", "bind": mqtt}} if mqtt else None,
        "log.level": log_level,
        "log.format": log_format,
    }
    return {path: value for path, value in given.items() if value is not None}


@click.command()
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path),
    envvar="BROOKMQ_CONFIG",
    metavar="FILE",
    help="TOML file to read.",
)
@click.option("--name", metavar="NAME@HOST", help="Name of this node.")
@click.option("--role", type=click.Choice(["core", "replicant", "gateway"]), help="What it does in a cluster.")
@click.option("--core-nodes", multiple=True, metavar="NAME@HOST", help="A core to join; may be given several times.")
@click.option("--data-dir", metavar="FOLDER", help="Folder for what the node keeps on disk.")
@click.option("--mqtt", metavar="HOST:PORT", help="Listen here for MQTT, instead of all configured listeners.")
@click.option("--http", metavar="HOST:PORT", help="Listen here for HTTP.")
@click.option("--log-level", metavar="LEVEL", help="debug, info, warning, error or critical.")
@click.option("--log-format", metavar="FORMAT", help="auto, human or json.")
def start(
    file: Path | None,
    name: str | None,
    role: str | None,
    core_nodes: tuple[str, ...],
    data_dir: str | None,
    mqtt: str | None,
    http: str | None,
    log_level: str | None,
    log_format: str | None,
) -> None:
    """Start a node and run it until SIGTERM or Ctrl-C.

    Once it takes connections it prints one line: `brookmq ready name=… mqtt=HOST:PORT http=HOST:PORT`. Options stand
    above the environment, which stands above the file. Port 0 means any free one.

    \b
    Examples:
      brookmq start
      brookmq start --config brookmq.toml
      brookmq start --mqtt 127.0.0.1:0 --http 127.0.0.1:0 --data-dir /tmp/node
      BROOKMQ_MQTT__PACKET_SIZE_MAX=256KiB brookmq start
    """
    overrides = overrides_of(name, role, core_nodes, data_dir, mqtt, http, log_level, log_format)
    try:
        config = load(file, os.environ, overrides)
        logs.configure(config.log)
        sys.exit(_run(config))
    except OperationError as error:
        raise Failure(str(error)) from error


def _run(config: Config) -> int:
    from brookmq.node import run  # the whole broker: not before the configuration is known to be good

    return run(config)
