"""Run as a program on a small disk: a node meets a disk without room and uses its store when there is some.

`python -m tests.node.small_disk FOLDER`, where FOLDER is on a disk of some 64 MB. Prints what it saw; a failed
assertion is its exit code.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.harness.node import Node
from tests.harness.raw import Client
from tests.node.watching import WatchedStore, until

BACK_SECONDS_MAX = 5.0  # once there is room


def fill(filler: Path) -> None:
    """Take all the room that is left."""
    found = os.statvfs(filler.parent)
    with filler.open("wb") as file:
        file.write(bytes(found.f_bavail * found.f_frsize))


def start_without_room(node: Node, filler: Path) -> None:
    """The first start ever: nothing can be written, not even the folder's format."""
    with WatchedStore(node) as watched, Client(node.mqtt) as client:
        assert "is full" in watched.readiness()
        assert "is full" in watched.alarms()["store_disk_full"]
        assert watched.store() is None
        client.connect().subscribe("t", qos=1)
        client.publish("t", b"served without a store", qos=1)
        assert client.take().payload == b"served without a store"
        filler.unlink()
        print(f"ready {watched.until_ready(BACK_SECONDS_MAX):.2f} s after there was room")
        until(lambda: watched.alarms() == {}, "the alarms are over")
        assert node.stop() == 0


def main(folder: Path) -> None:
    filler, log = folder / "filler", Path(sys.argv[2])
    fill(filler)
    start_without_room(Node(log / "first", arguments=("--data-dir", str(folder / "data"))), filler)
    fill(filler)
    start_without_room(Node(log / "again", arguments=("--data-dir", str(folder / "data"))), filler)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
