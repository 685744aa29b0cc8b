"""The configuration of a node: one TOML file, the environment, the command line; checked before anything starts.

``load`` gives a ``Config`` or raises ``ConfigError`` with the path of the key and one clear line. ``check`` gives all
problems at once. The tables and keys are the models in the modules beside this one.
"""

from brookmq.base.config.listeners import Certificate, Http, Listener, Tls
from brookmq.base.config.load import check, load
from brookmq.base.config.model import Config, unprotected
from brookmq.base.config.operation import Access, Cluster, Edge, Log, LogLevel, Node, Pipeline, Plugins
from brookmq.base.config.protocol import (
    AutoSubscribe,
    Delayed,
    Exclusive,
    Mqtt,
    Retained,
    Rewrite,
    Session,
    Shared,
    SharedGroup,
    SharedStrategy,
    SysTopics,
)
from brookmq.base.config.storing import Journal, Store
from brookmq.base.config.values import Address, parse_address

__all__ = [
    "Access",
    "Address",
    "AutoSubscribe",
    "Certificate",
    "Cluster",
    "Config",
    "Delayed",
    "Edge",
    "Exclusive",
    "Http",
    "Journal",
    "Listener",
    "Log",
    "LogLevel",
    "Mqtt",
    "Node",
    "Pipeline",
    "Plugins",
    "Retained",
    "Rewrite",
    "Session",
    "Shared",
    "SharedGroup",
    "SharedStrategy",
    "Store",
    "SysTopics",
    "Tls",
    "check",
    "load",
    "parse_address",
    "unprotected",
]
