"""The HTTP application: resources, pages, login, errors and limits put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from brookmq import __version__
from brookmq.ops import availability, pages
from brookmq.ops.api import ROUTERS
from brookmq.ops.bounds import BoundedBodies
from brookmq.ops.errors import ErrorBody, install_error_handlers
from brookmq.ops.history import History
from brookmq.ops.login import HttpAuthenticator, require_login
from brookmq.ops.names import NamesInPaths
from brookmq.ops.view import NodeView

API_PREFIX = "/api/v1"

DESCRIPTION = """\
Everything that `brookmq ctl` and the overview page do goes through here.

Listings come in pages: pass the `next` of a page as `after` to get the following one, until `next` is null.
Names in paths are percent-encoded, slashes as `%2F`. Every error is `{"code": …, "message": …}`.
"""


def create_app(view: NodeView, authenticator: HttpAuthenticator, history: History) -> FastAPI:
    """The application of one node."""
    app = FastAPI(
        title="BrookMQ",
        version=__version__,
        description=DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.state.view = view
    app.state.authenticator = authenticator
    app.state.history = history
    login = [Depends(require_login)]
    errors: dict[int | str, dict[str, Any]] = {"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}}
    for router in ROUTERS:
        app.include_router(router, prefix=API_PREFIX, dependencies=login, responses=errors)
    app.include_router(availability.prometheus, dependencies=login, responses=errors)
    app.include_router(availability.checks, responses=errors)
    app.include_router(pages.router)
    app.add_api_route(pages.OPENAPI_URL, _openapi_endpoint(app), include_in_schema=False)
    install_error_handlers(app)
    app.add_middleware(BoundedBodies)
    app.add_middleware(NamesInPaths)
    return app


def _operation_id(route: APIRoute) -> str:
    return route.name


def _openapi_endpoint(app: FastAPI) -> Callable[[], dict[str, Any]]:
    def openapi() -> dict[str, Any]:
        """The API's description. Made when first asked for, and not on the event loop: it takes some 50 ms."""
        if app.openapi_schema is None:
            app.openapi_schema = _without_422(
                get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            )
        return app.openapi_schema

    return openapi


def _without_422(schema: dict[str, Any]) -> dict[str, Any]:
    """A wrong parameter is answered with 400 in our own shape, so the framework's 422 is not part of the API."""
    for operations in schema["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
    for name in ("HTTPValidationError", "ValidationError"):
        schema["components"]["schemas"].pop(name, None)
    return schema
