"""The store under the node: NATS JetStream, its process and its client side."""
