"""Spark on the journal: what reading, following, starting and capturing cost. ``python -m bench.spark``."""
