"""Registration of hooks as a plugin sees it: with the types of each point, under the plugin's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

from brookmq.access.hooks import Hooks
from brookmq.access.points import (
    AuthenticateHook,
    AuthorizeHook,
    ClientHook,
    ClientPoint,
    DecidePoint,
    MessageHook,
    MessagePoint,
    SubscriptionHook,
    SubscriptionPoint,
)


class HookRegistrar:
    """Registration with types, for one owner. ``sync=True``: the function answers at once and is called in place."""

    def __init__(self, hooks: Hooks, owner: str) -> None:
        self._hooks = hooks
        self.owner = owner

    @overload
    def register(
        self,
        point: DecidePoint,
        function: AuthenticateHook,
        *,
        sync: bool = ...,
        refuse_on_error: bool | None = ...,
        order: int = ...,
    ) -> None: ...
    @overload
    def register(
        self,
        point: Literal["authorize"],
        function: AuthorizeHook,
        *,
        sync: bool = ...,
        refuse_on_error: bool | None = ...,
        order: int = ...,
    ) -> None: ...
    @overload
    def register(
        self,
        point: MessagePoint,
        function: MessageHook,
        *,
        sync: bool = ...,
        refuse_on_error: bool | None = ...,
        order: int = ...,
    ) -> None: ...
    @overload
    def register(self, point: ClientPoint, function: ClientHook, *, sync: bool = ..., order: int = ...) -> None: ...
    @overload
    def register(
        self, point: SubscriptionPoint, function: SubscriptionHook, *, sync: bool = ..., order: int = ...
    ) -> None: ...

    def register(
        self,
        point: str,
        function: Callable[..., Any],
        *,
        sync: bool = False,
        refuse_on_error: bool | None = None,
        order: int = 0,
    ) -> None:
        """Call the function at this point from now on."""
        self._hooks.register(point, function, self.owner, sync=sync, refuse_on_error=refuse_on_error, order=order)
