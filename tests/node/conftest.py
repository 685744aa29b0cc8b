"""Nodes as real processes, with the store that each starts."""

from __future__ import annotations

from tests.harness.fixtures import client, make_node, raw

__all__ = ["client", "make_node", "raw"]
