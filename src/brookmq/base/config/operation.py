"""How a node runs: ``[node]``, ``[cluster]``, ``[edge]``, ``[access]``, ``[pipeline]``, ``[log]``, ``[plugins]``."""

from __future__ import annotations

from typing import Any, Literal

from brookmq.base.config.section import Limit, Section, setting
from brookmq.base.config.values import DAY, HOUR, KIB, MIB, MINUTE, SECOND, Duration, Size

LogLevel = Literal["debug", "info", "warning", "error", "critical"]


class Node(Section):
    """``[node]``."""

    name: str = setting(
        "brookmq@127.0.0.1",
        "Name of this node, NAME@HOST, different for every node of a cluster.",
        pattern=r"^[A-Za-z0-9_.-]+@[A-Za-z0-9_.:\[\]-]+$",
        max_length=255,
    )
    role: Literal["core", "replicant", "gateway"] = setting("core", "What this node does in a cluster.")
    core_nodes: list[str] = setting([], "Names of the cores, for nodes that join a cluster.")
    data_dir: str = setting("data", "Folder for what the node keeps on disk; one folder for each node.", min_length=1)


class Cluster(Section):
    """``[cluster]``."""

    name: str = setting(
        "brookmq", "Name of the cluster; nodes of another name are refused.", pattern=r"^[A-Za-z0-9_-]+$", max_length=64
    )


class Edge(Section):
    """``[edge]``: connections that do not keep up, and the end of all of them."""

    output_bytes_max: Size = setting(
        MIB,
        "Bytes that wait for one connection that does not read.",
        limit=Limit(
            "Publishers to it are slowed down for up to patience; then QoS 0 messages for it are dropped "
            "and counted, and QoS 1 and 2 wait in its session's queue."
        ),
        ge=4 * KIB,
        le=1024 * MIB,
    )
    patience: Duration = setting(
        1 * SECOND,
        "How long publishers wait for a subscriber that takes less than 64 KiB a second; "
        "used up, it is back after a minute.",
        limit=Limit("Its publishers go on without waiting for it."),
        ge=0,
        le=MINUTE,
    )
    drain_time: Duration = setting(
        5 * SECOND,
        "Time that connections get at the stop of the node to take their last bytes.",
        limit=Limit("What is left is closed."),
        ge=0,
        le=HOUR,
    )
    open_files: int = setting(
        0,
        "Open files to ask the system for, which is what bounds the number of connections; "
        "0 for as many as the system allows.",
        limit=Limit("A further connection is closed when it is accepted, and counted.", unit="files"),
        ge=0,
    )


class Access(Section):
    """``[access]``: who may connect."""

    anonymous: bool = setting(
        False,
        "Let everybody in from everywhere. Off and without an authenticator, MQTT listens on loopback addresses only.",
    )


class Pipeline(Section):
    """``[pipeline]``: rules, and the program that runs them (`brookmq pipeline run`)."""

    autostart: bool = setting(
        False, "Start a pipeline with the node, and keep it running. It needs the HTTP server, and Spark installed."
    )
    master: str = setting(
        "local[*,4]", "The Spark that such a pipeline uses: all cores of this machine, or a cluster.", min_length=1
    )
    data_dir: str = setting("", "Folder in which a pipeline keeps how far it is; empty for pipeline in node.data_dir.")
    rows_per_batch: int = setting(
        100_000,
        "Messages that a rule reads in one go.",
        limit=Limit("What is left is read in the next one.", unit="messages"),
        ge=1,
        le=100_000_000,
    )
    checker_idle: Duration = setting(
        10 * MINUTE,
        "How long the process that looks at rules with Spark stays after the last question.",
        limit=Limit("It ends; the next question starts it again, which takes seconds."),
        ge=1,
        le=30 * DAY,
    )


class Log(Section):
    """``[log]``."""

    level: LogLevel = setting("info", "Lowest level that is written; it can be changed while the node runs.")
    format: Literal["auto", "human", "json"] = setting(
        "auto", "human for people, json for one object per line; auto is human, coloured in a terminal."
    )
    file: str = setting("", "File to write to; empty for standard error.")
    rotate_bytes: Size = setting(
        64 * MIB, "Size of the file.", limit=Limit("The file is renamed to FILE.1 and a new one begins."), ge=KIB
    )
    rotate_count: int = setting(
        5, "Renamed files that are kept.", limit=Limit("The oldest is deleted.", unit="files"), ge=1, le=1000
    )


class Plugins(Section):
    """``[plugins]``: Python packages that take part through hooks."""

    enabled: list[str] = setting([], "Names of the plugins to load (entry points of the group brookmq.plugins).")
    required: list[str] = setting(
        [], "Plugins that the node does not start without; they need not stand under enabled, too."
    )
    hook_time_limit: Duration = setting(
        1 * SECOND,
        "Time that one call of a plugin's hook may take.",
        limit=Limit(
            "The call is given up and counts as failed; a plugin that holds the whole node up is switched off, "
            "with an alarm."
        ),
        gt=0,
        le=MINUTE,
    )
    settings: dict[str, dict[str, Any]] = setting(
        {}, "Settings of each plugin, by its name.", examples=[{"example": {"greeting": "hello"}}]
    )
