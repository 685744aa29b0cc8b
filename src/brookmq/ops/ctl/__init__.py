"""``brookmq ctl``: the HTTP API of a node, from the command line."""

from brookmq.ops.ctl.main import ctl

__all__ = ["ctl"]
