"""BrookMQ: an MQTT broker for fleets of devices."""

from brookmq import _pure

__version__ = "0.1.0"

_pure.install()
