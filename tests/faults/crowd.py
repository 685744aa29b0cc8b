"""Many clients at once, opened in bulk: all connect, then all send, then all read."""

from __future__ import annotations

import resource
import socket
from contextlib import suppress

from tests.harness import wire
from tests.harness.raw import DEADLINE, Client, ClosedError, unique
from tests.harness.wire import Kind

FILES_RESERVED = 200  # of the test process, for all that is not in the crowd


class Crowd:
    """Clients of both protocol versions in turn (those with an even number speak MQTT 5)."""

    def __init__(self) -> None:
        self.clients: list[Client] = []

    def gather(
        self, count: int, address: tuple[str, int], topic: str = "", *, qos: int = 0, keep_alive: int = 60
    ) -> list[Client]:
        """Connect so many more; each subscribes to ``topic``, where %i stands for its number."""
        make_room(len(self.clients) + count)
        arrived = [Client(address, 4 if number % 2 else 5) for number in range(count)]
        self.clients += arrived
        for number, client in enumerate(arrived):
            client.client_id = unique("crowd")
            client.send(wire.connect(client.client_id, version=client.version, keep_alive=keep_alive))
            if topic:
                filters = [(topic.replace("%i", str(number)), qos)]
                client.send(wire.subscribe(1, filters, version=client.version))
        for client in arrived:
            assert client.expect(Kind.CONNACK).reason == 0
            if topic:
                assert client.expect(Kind.SUBACK).reasons == [qos]
        return arrived

    def reset(self) -> None:
        """All connections end at once, as when a network fails and comes back."""
        for client in self.clients:
            client.drop()
        self.clients.clear()

    def finish(self) -> None:
        """All clients end their side at once, without DISCONNECT."""
        for client in self.clients:
            client.stream.socket.shutdown(socket.SHUT_WR)
        for client in self.clients:
            client.close()
        self.clients.clear()

    def leave(self) -> None:
        """All clients say goodbye at once, and the node closes their connections."""
        for client in self.clients:
            client.send(wire.disconnect())
        for client in self.clients:
            with suppress(ClosedError):
                while True:
                    client.receive(DEADLINE)
        self.close()

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.clients.clear()


def make_room(count: int) -> None:
    """So many sockets in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + FILES_RESERVED
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
        )
