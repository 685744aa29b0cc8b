"""Tests of operations: over a node of a few dicts, and over a real one."""
