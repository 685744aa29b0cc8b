"""Plugins: Python packages that a node finds by entry point and runs beside the broker.

A package names its plugin in the entry point group ``brookmq.plugins``; the configuration names the plugins that run
(``plugins.enabled``), their settings (``plugins.settings.NAME``) and those the node must not run without
(``plugins.required``). A plugin that cannot be found, imported, configured or started is one log line and an alarm, and
the node goes on without it: right for one that adds something, wrong for one that guards the door. So what decides who
may come in belongs under ``required``, where the same failure stops the start of the node.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from brookmq.access.hooks import Hooks
from brookmq.access.registrar import HookRegistrar
from brookmq.base.alarms import Alarms
from brookmq.base.errors import BrookError, ConfigError, OperationError
from brookmq.base.message import Message

logger = logging.getLogger("brookmq.plugins")

GROUP = "brookmq.plugins"
START_SECONDS_MAX = 10.0
STOP_SECONDS_MAX = 5.0

Publish = Callable[[Message], Awaitable[None]]


class NoSettings(BaseModel):
    """The settings of a plugin that has none: any key is a mistake."""

    model_config = ConfigDict(extra="forbid")


SettingsT = TypeVar("SettingsT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class PluginContext:
    """What a plugin is given at its start."""

    node: str  # name of the node, name@host
    hooks: HookRegistrar
    alarms: Alarms
    publish: Publish  # publishes a message as the node itself
    logger: logging.Logger


class Plugin(Generic[SettingsT]):
    """The base of a plugin. Its class is what the entry point names; the entry point's name is the plugin's name."""

    version: ClassVar[str] = ""
    settings_model: ClassVar[type[BaseModel]] = NoSettings  # checks plugins.settings.NAME; make it SettingsT

    def __init__(self, settings: SettingsT) -> None:
        self.settings = settings

    async def start(self, context: PluginContext) -> None:
        """Open what is needed and register hooks. An error here means that the plugin does not run."""

    async def stop(self) -> None:
        """Close what ``start`` opened; the hooks are gone already. Called after a failed start, too."""


@dataclass(slots=True)
class LoadedPlugin:
    """A plugin that was asked for, as listings show it."""

    name: str
    version: str = ""
    state: Literal["running", "failed", "stopped"] = "failed"
    error: str = ""
    plugin: Plugin[Any] | None = None


def installed() -> dict[str, EntryPoint]:
    """The plugins that are installed, by name; none of them is imported."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


class Plugins:
    """The plugins of one node: started in the order of the configuration, stopped in the opposite one."""

    def __init__(
        self,
        node: str,
        hooks: Hooks,
        alarms: Alarms,
        publish: Publish,
        *,
        enabled: Sequence[str] = (),
        required: Sequence[str] = (),
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._node = node
        self._hooks = hooks
        self._alarms = alarms
        self._publish = publish
        self._required = frozenset(required)
        self._enabled = list(dict.fromkeys((*enabled, *required)))  # each once; required implies enabled
        self._settings = settings or {}
        self._clock = clock
        self._loaded: dict[str, LoadedPlugin] = {}

    def loaded(self) -> list[LoadedPlugin]:
        """Everything that was asked for, running or not."""
        return list(self._loaded.values())

    async def start(self) -> None:
        """Start all of them; OperationError when a required one fails (what runs by then is the caller's to stop)."""
        found = installed()
        for name in sorted(set(self._settings) - set(self._enabled)):
            logger.warning("plugins.settings.%s: the plugin is not enabled", name)
        for name in self._enabled:
            loaded = self._loaded[name] = LoadedPlugin(name)
            try:
                await self._start_one(loaded, found)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - another's code must not stop the node
                await self._give_up(loaded, error)

    async def stop(self) -> None:
        """Stop all of them. One that fails or hangs is logged and left behind."""
        for loaded in reversed(self._loaded.values()):
            if loaded.state == "running":
                loaded.state = "stopped"
                await self._hooks.remove(loaded.name)
                await self._stop_one(loaded)

    async def _start_one(self, loaded: LoadedPlugin, found: Mapping[str, EntryPoint]) -> None:
        entry = found.get(loaded.name)
        if entry is None:
            raise OperationError(f"not installed (no entry point of this name in the group {GROUP})")
        kind = entry.load()
        if not (isinstance(kind, type) and issubclass(kind, Plugin)):
            raise OperationError(f"{entry.value} is not a subclass of brookmq.access.plugins.Plugin")
        loaded.version = kind.version or (entry.dist.version if entry.dist is not None else "")
        loaded.plugin = kind(self._checked_settings(loaded.name, kind))
        context = PluginContext(
            self._node,
            HookRegistrar(self._hooks, loaded.name),
            self._alarms,
            self._publish,
            logging.getLogger(f"brookmq.plugins.{loaded.name}"),
        )
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                await loaded.plugin.start(context)
        except TimeoutError as error:
            raise OperationError(f"did not start within {START_SECONDS_MAX:.0f} s") from error
        loaded.state = "running"
        logger.info("plugin %s %s runs", loaded.name, loaded.version)

    def _checked_settings(self, name: str, kind: type[Plugin[Any]]) -> BaseModel:
        try:
            return kind.settings_model.model_validate(self._settings.get(name, {}))
        except ValidationError as error:
            first = error.errors()[0]
            path = ".".join(("plugins.settings", name, *map(str, first["loc"])))
            raise ConfigError(path, first["msg"]) from error

    async def _give_up(self, loaded: LoadedPlugin, error: Exception | SystemExit) -> None:
        own = isinstance(error, BrookError)  # ours says it all; of anything else the kind and the place matter
        loaded.error = str(error) if own else f"{type(error).__name__}: {error}"
        await self._hooks.remove(loaded.name)
        if loaded.plugin is not None:
            await self._stop_one(loaded)
        text = f"plugin {loaded.name} does not run: {loaded.error}"
        if loaded.name in self._required:
            raise OperationError(f"{text} (it is required)") from error
        logger.error("%s", text, exc_info=None if own else error)
        self._alarms.activate(f"plugin_failed/{loaded.name}", {"plugin": loaded.name}, text, self._clock())

    async def _stop_one(self, loaded: LoadedPlugin) -> None:
        plugin, loaded.plugin = loaded.plugin, None
        if plugin is None:
            return
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await plugin.stop()
        except (Exception, SystemExit):  # the others still have to be stopped
            logger.exception("plugin %s did not stop cleanly", loaded.name)
