"""Tests here are coroutines: clients and killer share a loop, and so a clock."""

from __future__ import annotations

import uvloop

from tests.edge.loop import coroutine_tests

pytest_pyfunc_call = coroutine_tests(uvloop.new_event_loop)
