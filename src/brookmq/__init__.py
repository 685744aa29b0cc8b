"""BrookMQ: an MQTT broker for fleets of devices."""

__version__ = "0.1.0"
