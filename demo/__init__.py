"""A thousand devices, a node, a pipeline and a picture of what came out: ``make demo``."""
