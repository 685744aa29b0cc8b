"""What the guide promises beyond the specification, against real nodes."""

from __future__ import annotations

from tests.harness.fixtures import client, make_node, node, raw

__all__ = ["client", "make_node", "node", "raw"]
