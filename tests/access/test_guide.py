"""The guide to plugins says what the code does."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from brookmq.access.hook import HookLimits
from brookmq.access.hooks import Hooks
from brookmq.access.plugins import PluginContext
from brookmq.access.points import ALLOW, IGNORE, POINTS, Credentials, Deny
from brookmq.access.registrar import HookRegistrar
from brookmq.base.alarms import Alarms
from brookmq.base.message import Message

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "plugins.md"


def test_the_plugin_in_the_guide_works(hooks: Hooks, alarms: Alarms, credentials: Credentials) -> None:
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert code is not None
    namespace: dict[str, Any] = {"__name__": "guide"}
    exec(compile(code[1], str(GUIDE), "exec"), namespace)
    plugin = namespace["DoorPlugin"](namespace["DoorSettings"](users={"ada": "secret"}))

    async def publish(_: Message) -> None: ...

    context = PluginContext("n", HookRegistrar(hooks, "door"), alarms, publish, logging.getLogger("door"))
    asyncio.run(plugin.start(context))
    assert hooks.authenticate_now(credentials) == ALLOW
    assert hooks.authenticate_now(replace(credentials, password=None)) == Deny(0x86)
    stranger = replace(credentials, client=replace(credentials.client, username=None))
    assert hooks.authenticate_now(stranger) is IGNORE


def test_every_hook_point_is_in_the_guide() -> None:
    guide = GUIDE.read_text()
    assert [point for point in POINTS if f"`{point}`" not in guide] == []


def test_the_limits_in_the_guide_are_those_of_the_code() -> None:
    guide, limits = GUIDE.read_text(), HookLimits()
    assert f"more than {limits.hold_seconds_max * 1000:.0f} ms" in guide
    assert f"({limits.threads_max} for each hook)" in guide
    assert f"({limits.events_max:,} waiting)" in guide
    assert f"more than {limits.waiting_max} calls" in guide
