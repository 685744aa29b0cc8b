"""Section 3.1: the reserved connect flag is not looked at."""

from brookmq.mqtt import decoding

FAILS = "test_3_01_connect.py::test_the_reserved_connect_flag_is_refused[5.0]"


def check_nothing(flags: int, version: int) -> None:
    pass


decoding._check_connect_flags = check_nothing
