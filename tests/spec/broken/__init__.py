"""Nodes with one rule switched off, one for each chapter: proof that the suite would notice.

A module here is imported by a node before anything else (`tests.spec.patched`) and takes one rule out of it. The test
that it names must fail on that node (`test_broken.py`). The modules patch before the rest of the package is imported,
so a function that others import by name is replaced for them too.
"""
