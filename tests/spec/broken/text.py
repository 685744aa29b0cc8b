"""Chapter 1: ill-formed UTF-8 and U+0000 are let through."""

from brookmq.mqtt.primitives import Reader

FAILS = "test_1_data.py::test_ill_formed_topic_ends_the_connection[subscribe-surrogate-5.0]"


def string(self: Reader, field: str) -> str:
    return self.binary(field).decode(errors="replace")


Reader.string = string  # type: ignore[method-assign]
