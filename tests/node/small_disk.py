"""Run as a program on a small disk: a node meets a disk without room and uses its store when there is some.

`python -m tests.node.small_disk FOLDER`, where FOLDER is on a disk of some 64 MB. Prints what it saw; a failed
assertion is its exit code.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.harness import wire
from tests.harness.node import Node
from tests.harness.raw import Client
from tests.harness.wire import Kind
from tests.node.watching import WatchedStore, until

QUOTA_EXCEEDED = 0x97
SHORT_WAIT = '[store]\nwait = "1s"'


def fill(filler: Path) -> None:
    """Take all the room that is left."""
    found = os.statvfs(filler.parent)
    with filler.open("wb") as file:
        file.write(bytes(found.f_bavail * found.f_frsize))


def served_without_a_store(client: Client) -> None:
    """A node that has not had its store since its start serves connected clients, and promises nothing.

    Who is away, and wants what, is in the store: any message of QoS 1 or 2 may be for somebody who is.
    """
    client.subscribe("t", qos=2)
    client.publish("t", b"now", qos=0)
    assert client.take().payload == b"now"
    for qos in (1, 2):
        client.send(wire.publish("t", b"not kept", qos=qos, packet_id=77))
        assert client.expect(Kind.PUBLISH).payload == b"not kept"
        answer = client.expect(Kind.PUBACK if qos == 1 else Kind.PUBREC)
        assert answer.reason == QUOTA_EXCEEDED


def start_without_room(node: Node, filler: Path) -> None:
    """The first start ever: nothing can be written, not even the folder's format."""
    with WatchedStore(node) as watched, Client(node.mqtt) as client:
        assert "is full" in watched.readiness()
        assert "is full" in watched.alarms()["store_disk_full"]
        assert watched.store() is None
        served_without_a_store(client.connect())
        filler.unlink()
        print(f"ready {watched.until_ready():.2f} s after there was room")
        until(lambda: watched.alarms() == {}, "the alarms are over")
        assert node.stop() == 0


def main(folder: Path) -> None:
    filler, log = folder / "filler", Path(sys.argv[2])
    fill(filler)
    start_without_room(Node(log / "first", SHORT_WAIT, arguments=("--data-dir", str(folder / "data"))), filler)
    fill(filler)
    start_without_room(Node(log / "again", SHORT_WAIT, arguments=("--data-dir", str(folder / "data"))), filler)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
