"""What all tests share: a running node, and a client that sends exactly the bytes that a test asks for."""
