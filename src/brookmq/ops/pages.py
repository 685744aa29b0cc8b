"""The pages for people: the overview at ``/`` and the API's documentation at ``/api/docs``.

Both work without the internet: the overview is one file, and Swagger UI's script and style come from the package
``fastapi-offline``, of which nothing but these two files is used.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import FileResponse, HTMLResponse

from brookmq.ops.errors import ApiError

router = APIRouter(include_in_schema=False)

OPENAPI_URL = "/api/openapi.json"
DOCS_URL = "/api/docs"
_SWAGGER_FILES = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}
_WEB = Path(__file__).parent / "web"


@router.api_route("/", methods=["GET", "HEAD"])
async def overview_page() -> Response:
    """The overview: what the node does right now."""
    page, policy = _overview()
    return HTMLResponse(page, headers={"content-security-policy": policy, "cache-control": "no-cache"})


@cache
def _overview() -> tuple[str, str]:
    """The page, and the policy that lets nothing run in it but its own script.

    Names of clients and topics come from strangers. The page writes them as text, never as HTML; should that ever go
    wrong, the browser still refuses to run what was slipped in.
    """
    page = (_WEB / "overview.html").read_text(encoding="utf-8")
    scripts = " ".join(map(_source_hash, re.findall(r"<script>(.*?)</script>", page, re.DOTALL)))
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return page, policy


def _source_hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


@router.get(DOCS_URL)
async def api_docs() -> HTMLResponse:
    """Swagger UI over the API's own description."""
    return get_swagger_ui_html(
        openapi_url=OPENAPI_URL,
        title="BrookMQ HTTP API",
        swagger_js_url=f"{DOCS_URL}/swagger-ui-bundle.js",
        swagger_css_url=f"{DOCS_URL}/swagger-ui.css",
        swagger_favicon_url="data:,",
    )


@router.get(DOCS_URL + "/{name}")
async def api_docs_file(name: str) -> FileResponse:
    """A file of Swagger UI."""
    if name not in _SWAGGER_FILES:
        raise ApiError(HTTPStatus.NOT_FOUND, f"nothing at {DOCS_URL}/{name}")
    headers = {"cache-control": "max-age=86400"}
    return FileResponse(_swagger_folder() / name, media_type=_SWAGGER_FILES[name], headers=headers)


@cache
def _swagger_folder() -> Path:
    """Where the package keeps its files; found without importing it."""
    spec = find_spec("fastapi_offline")
    if spec is None or spec.origin is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "Swagger UI is not installed; pip install fastapi-offline")
    return Path(spec.origin).parent / "static"
