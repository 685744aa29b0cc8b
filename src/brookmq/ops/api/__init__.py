"""The resources under ``/api/v1``: one module each, with its router.

To add a resource: write a module here with a ``router``, and name it in :data:`ROUTERS`. Login, errors, limits and the
node's view come from the app; a handler asks for what it needs (:mod:`brookmq.ops.api.parameters`).
"""

from __future__ import annotations

from fastapi import APIRouter

from brookmq.ops.api import (
    alarms,
    clients,
    data,
    exactly_once,
    journal,
    log_level,
    metrics,
    node,
    overview,
    pipeline,
    publish,
    readers,
    resources,
    retained,
    rules,
    schemas,
    subscriptions,
    tables,
    topics,
)

ROUTERS: tuple[APIRouter, ...] = (
    node.router,
    clients.router,
    subscriptions.router,
    topics.router,
    retained.router,
    publish.router,
    exactly_once.router,
    data.router,
    journal.router,
    readers.router,
    rules.router,
    schemas.router,
    tables.router,
    resources.router,
    pipeline.router,
    metrics.router,
    alarms.router,
    log_level.router,
    overview.router,
)
