"""The journal: batches, shards, index, reading."""
