"""A deterministic simulation of a node with its store: clients, crashes, a slow store, and what has to hold."""
