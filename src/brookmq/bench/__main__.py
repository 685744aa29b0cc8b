"""``python -m brookmq.bench``: the load tool alone."""

from brookmq.bench.cli import bench

bench(prog_name="brookmq bench")
