"""Interoperability: clients that others wrote, against a real node, over every transport and protocol version."""
