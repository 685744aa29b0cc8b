"""A table kept as a log of changes, with snapshots of its parts."""
