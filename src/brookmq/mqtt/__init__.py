"""MQTT itself: packets, properties, reason codes, topic names and filters. Bytes in, values out; no socket, no clock."""
