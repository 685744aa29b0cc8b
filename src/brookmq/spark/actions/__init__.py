"""What rules do with their rows, one module for each type of action."""

from brookmq.spark.actions.interface import Action, ActionError, BatchKey, NodeAccess

__all__ = ["Action", "ActionError", "BatchKey", "NodeAccess"]
