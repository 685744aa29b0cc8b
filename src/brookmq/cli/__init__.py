"""The command line ``brookmq``."""

from brookmq.cli.main import main

__all__ = ["main"]
