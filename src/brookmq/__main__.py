"""``python -m brookmq`` is the command ``brookmq``."""

from brookmq.cli import main

main()
