"""Sections 3.12 and 3.13: PINGREQ and PINGRESP."""

from __future__ import annotations

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.wire import PINGREQ, Kind
from tests.spec.marks import both, mqtt5, mqtt311


@both
@mqtt5("3.12.4-1")
@mqtt311("3.12.4-1")
def test_every_pingreq_has_its_pingresp(client: ClientMaker, version: int) -> None:
    alive = client(version)
    alive.send(PINGREQ * 50)
    for _ in range(50):
        alive.expect(Kind.PINGRESP)
    alive.expect_nothing()


@both
@mqtt5("4.13.1-1")
@mqtt311("4.8.0-1")
def test_a_pingreq_with_a_body_ends_the_connection(client: ClientMaker, version: int) -> None:
    client(version).send(wire.packet(Kind.PINGREQ, 0, b"x")).expect_closed(0x81)
