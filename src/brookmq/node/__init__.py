"""A node: everything wired together, started and stopped in order."""

from brookmq.node.run import run

__all__ = ["run"]
