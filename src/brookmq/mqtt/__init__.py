"""MQTT itself: packets, properties, reason codes, topics. Bytes in, values out; no socket, no clock."""
