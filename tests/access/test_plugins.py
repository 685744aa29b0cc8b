"""Plugins: found by entry point, checked, started in order, and harmless when they fail."""

from __future__ import annotations

import asyncio
import logging
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brookmq.access import plugins as plugins_module
from brookmq.access.hooks import Hooks
from brookmq.access.plugins import Plugins, installed
from brookmq.base.alarms import Alarms
from brookmq.base.errors import OperationError
from brookmq.base.message import Message

SOURCE = """
    import asyncio
    from pydantic import BaseModel, Field
    from brookmq.access.plugins import Plugin, PluginContext
    from brookmq.access.points import ALLOW

    story = []

    class Settings(BaseModel, extra="forbid"):
        greeting: str = "hello"
        count: int = Field(1, ge=1)

    class Good(Plugin[Settings]):
        version = "1.2.3"
        settings_model = Settings

        async def start(self, context: PluginContext) -> None:
            story.append(("start good", self.settings.greeting, context.node))
            context.hooks.register("authenticate", lambda credentials: ALLOW, sync=True)
            await context.publish(None)

        async def stop(self) -> None:
            story.append(("stop good",))

    class Plain(Plugin):
        async def start(self, context):
            story.append(("start plain",))

        async def stop(self):
            story.append(("stop plain",))

    class FailsToStart(Plugin):
        async def start(self, context):
            context.hooks.register("publish", lambda client, message: None, sync=True)
            raise RuntimeError("no database")

        async def stop(self):
            story.append(("stop failed",))

    class Hangs(Plugin):
        async def start(self, context):
            await asyncio.sleep(60)

    class FailsToStop(Plugin):
        async def stop(self):
            raise RuntimeError("stuck")

    class Exits(Plugin):
        async def start(self, context):
            raise SystemExit(3)

    class NotAPlugin:
        pass
"""
ENTRY_POINTS = """
    [brookmq.plugins]
    good = made_up_plugins:Good
    plain = made_up_plugins:Plain
    fails_to_start = made_up_plugins:FailsToStart
    fails_to_stop = made_up_plugins:FailsToStop
    hangs = made_up_plugins:Hangs
    exits = made_up_plugins:Exits
    not_a_plugin = made_up_plugins:NotAPlugin
    no_module = nowhere_to_be_found:Plugin
"""


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, ...]]]:
    """An installed distribution with plugins, and what they did."""
    (tmp_path / "made_up_plugins.py").write_text(textwrap.dedent(SOURCE))
    information = tmp_path / "made_up-9.9.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 9.9\n")
    (information / "entry_points.txt").write_text(textwrap.dedent(ENTRY_POINTS))
    monkeypatch.syspath_prepend(str(tmp_path))
    import made_up_plugins  # type: ignore[import-not-found]

    yield made_up_plugins.story
    del sys.modules["made_up_plugins"]


class Node:
    """What plugins get from a node."""

    def __init__(self, hooks: Hooks, alarms: Alarms) -> None:
        self.hooks = hooks
        self.alarms = alarms
        self.published: list[Message] = []

    async def publish(self, message: Message) -> None:
        self.published.append(message)

    def plugins(self, *enabled: str, **more: Any) -> Plugins:
        return Plugins("brookmq@test", self.hooks, self.alarms, self.publish, enabled=enabled, **more)


@pytest.fixture
def node(hooks: Hooks, alarms: Alarms) -> Node:
    return Node(hooks, alarms)


async def start_and_stop(plugins: Plugins) -> list[tuple[str, str]]:
    await plugins.start()
    states = [(loaded.name, loaded.state) for loaded in plugins.loaded()]
    await plugins.stop()
    return states


def test_nothing_is_loaded_unless_it_is_enabled(node: Node, story: list[Any]) -> None:
    assert {"good", "plain"} <= installed().keys()
    assert asyncio.run(start_and_stop(node.plugins())) == []
    assert story == []


def test_start_in_order_stop_in_the_opposite_one(node: Node, story: list[Any]) -> None:
    plugins = node.plugins("good", "plain", "good", settings={"good": {"greeting": "hi"}})

    async def scenario() -> None:
        await plugins.start()
        assert [(loaded.name, loaded.version, loaded.state) for loaded in plugins.loaded()] == [
            ("good", "1.2.3", "running"),
            ("plain", "9.9", "running"),  # the version of its distribution
        ]
        assert [hook.owner for hook in node.hooks.authenticate] == ["good"]
        assert len(node.published) == 1
        await plugins.stop()

    asyncio.run(scenario())
    assert story == [("start good", "hi", "brookmq@test"), ("start plain",), ("stop plain",), ("stop good",)]
    assert node.hooks.authenticate == ()
    assert [loaded.state for loaded in plugins.loaded()] == ["stopped", "stopped"]
    assert node.alarms.active() == []


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("unknown", "not installed (no entry point of this name in the group brookmq.plugins)"),
        ("no_module", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("not_a_plugin", "made_up_plugins:NotAPlugin is not a subclass of brookmq.access.plugins.Plugin"),
        ("fails_to_start", "RuntimeError: no database"),
        ("hangs", "did not start within 0 s"),
        ("exits", "SystemExit: 3"),
    ],
)
def test_a_plugin_that_fails_is_an_alarm_and_the_node_goes_on(
    node: Node,
    story: list[Any],
    name: str,
    error: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(plugins_module, "START_SECONDS_MAX", 0.01)
    plugins = node.plugins(name, "plain")
    with caplog.at_level(logging.ERROR, "brookmq.plugins"):
        states = asyncio.run(start_and_stop(plugins))
    assert states == [(name, "failed"), ("plain", "running")]
    assert plugins.loaded()[0].error == error
    (alarm,) = node.alarms.active()
    assert (alarm.name, alarm.message) == (f"plugin_failed/{name}", f"plugin {name} does not run: {error}")
    assert caplog.messages == [alarm.message]
    assert node.hooks.registered() == []


def test_what_a_failed_start_left_is_cleared(node: Node, story: list[Any]) -> None:
    asyncio.run(start_and_stop(node.plugins("fails_to_start")))
    assert node.hooks.publish == ()
    assert story == [("stop failed",)]


@pytest.mark.parametrize("name", ["unknown", "no_module", "fails_to_start"])
def test_a_required_plugin_that_fails_stops_the_start(node: Node, story: list[Any], name: str) -> None:
    plugins = node.plugins("plain", required=[name])

    async def scenario() -> None:
        with pytest.raises(OperationError, match=rf"plugin {name} does not run: .* \(it is required\)"):
            await plugins.start()
        await plugins.stop()

    asyncio.run(scenario())
    assert story[-1] == ("stop plain",)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"good": {"count": 0}}, "plugins.settings.good.count: Input should be greater than or equal to 1"),
        ({"good": {"grating": "x"}}, "plugins.settings.good.grating: Extra inputs are not permitted"),
        ({"plain": {"any": 1}}, "plugins.settings.plain.any: Extra inputs are not permitted"),
    ],
)
def test_settings_are_checked_by_the_plugins_own_model(
    node: Node, story: list[Any], settings: dict[str, dict[str, Any]], error: str
) -> None:
    (name,) = settings
    plugins = node.plugins(name, settings=settings)
    asyncio.run(start_and_stop(plugins))
    assert plugins.loaded()[0].error == error


def test_settings_of_a_plugin_that_is_not_enabled_are_pointed_at(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "brookmq.plugins"):
        asyncio.run(start_and_stop(node.plugins(settings={"god": {}})))
    assert caplog.messages == ["plugins.settings.god: the plugin is not enabled"]


def test_a_plugin_that_fails_to_stop_holds_nobody_up(
    node: Node, story: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    asyncio.run(start_and_stop(node.plugins("plain", "fails_to_stop")))
    assert story[-1] == ("stop plain",)
    assert "plugin fails_to_stop did not stop cleanly" in caplog.messages
