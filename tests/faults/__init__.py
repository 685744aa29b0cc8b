"""What must not bring a node down: subscribers that do not read, floods, half-open peers, waves of drops, a stop."""
