"""A node's data in one file, and back."""
