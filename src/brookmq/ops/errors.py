"""Errors of the HTTP API: whatever goes wrong, the answer is ``{"code": …, "message": …}``.

``code`` is for programs and never changes; ``message`` is for people and says what to do. Handlers raise
:class:`ApiError`; what the framework or the node raises is turned into the same shape here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from brookmq.base.errors import OperationError, PeerError
from brookmq.base.rule_documents import DocumentError, problem
from brookmq.ops.rule_view import CannotCheckError, ConflictError, RuleRefusedError
from brookmq.store.backup.file_format import BadBackup

CODES: Mapping[int, str] = {
    HTTPStatus.BAD_REQUEST: "bad_request",
    HTTPStatus.UNAUTHORIZED: "unauthorized",
    HTTPStatus.FORBIDDEN: "forbidden",
    HTTPStatus.NOT_FOUND: "not_found",
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
    HTTPStatus.REQUEST_TIMEOUT: "request_timeout",
    HTTPStatus.CONFLICT: "conflict",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "too_large",
    HTTPStatus.TOO_MANY_REQUESTS: "too_many_requests",
    HTTPStatus.INTERNAL_SERVER_ERROR: "internal_error",
    HTTPStatus.NOT_IMPLEMENTED: "not_implemented",
    HTTPStatus.SERVICE_UNAVAILABLE: "unavailable",
}


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What every error answers with. ``details`` are for programs, where there are any: line and column in a rule."""

    code: str
    message: str
    details: Mapping[str, Any] | None = None


class ApiError(HTTPException):
    """An answer other than success. ``headers`` are for what HTTP asks for, such as ``WWW-Authenticate``."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, message, headers)


def error_response(
    status: int, message: str, headers: Mapping[str, str] | None = None, details: Mapping[str, Any] | None = None
) -> JSONResponse:
    """The one shape of an error."""
    code = CODES.get(status, HTTPStatus(status).phrase.lower().replace(" ", "_"))
    body = {"code": code, "message": message} | ({} if details is None else {"details": details})
    return JSONResponse(body, status_code=status, headers=headers)


def install_error_handlers(app: FastAPI) -> None:
    """Give every error of this app the one shape."""

    @app.exception_handler(ApiError)
    async def on_api_error(_request: Request, error: ApiError) -> JSONResponse:
        return error_response(error.status_code, error.detail, error.headers)

    @app.exception_handler(HTTPException)
    async def on_http_exception(request: Request, error: HTTPException) -> JSONResponse:
        return error_response(error.status_code, _explained(request, error), error.headers)

    @app.exception_handler(RequestValidationError)
    async def on_invalid_request(_request: Request, error: RequestValidationError) -> JSONResponse:
        return error_response(HTTPStatus.BAD_REQUEST, "; ".join(map(_complaint, error.errors())))

    @app.exception_handler(PeerError)
    async def on_refused(_request: Request, error: PeerError) -> JSONResponse:
        return error_response(HTTPStatus.BAD_REQUEST, f"{error} (MQTT reason 0x{error.reason:02X})")

    @app.exception_handler(DocumentError)
    async def on_wrong_document(_request: Request, error: DocumentError) -> JSONResponse:
        return error_response(HTTPStatus.BAD_REQUEST, str(error))

    @app.exception_handler(RuleRefusedError)
    async def on_refused_rule(_request: Request, error: RuleRefusedError) -> JSONResponse:
        details = {"line": error.line, "column": error.column} if error.line else None
        where = f"line {error.line}, column {error.column}: " if error.line else ""
        return error_response(HTTPStatus.BAD_REQUEST, f"{where}{error}", details=details)

    @app.exception_handler(BadBackup)
    async def on_bad_backup(_request: Request, error: BadBackup) -> JSONResponse:
        return error_response(HTTPStatus.BAD_REQUEST, str(error))

    @app.exception_handler(ConflictError)
    async def on_conflict(_request: Request, error: ConflictError) -> JSONResponse:
        return error_response(HTTPStatus.CONFLICT, str(error))

    @app.exception_handler(CannotCheckError)
    async def on_nothing_to_check_with(_request: Request, error: CannotCheckError) -> JSONResponse:
        return error_response(HTTPStatus.NOT_IMPLEMENTED, str(error))

    @app.exception_handler(OperationError)
    async def on_operation_error(_request: Request, error: OperationError) -> JSONResponse:
        return error_response(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    @app.exception_handler(Exception)
    async def on_bug(_request: Request, _error: Exception) -> JSONResponse:
        # The server logs the traceback; the sender learns only where to look.
        return error_response(HTTPStatus.INTERNAL_SERVER_ERROR, "the node failed to answer; its log has the reason")


def _explained(request: Request, error: HTTPException) -> str:
    if error.status_code == HTTPStatus.NOT_FOUND:
        return f"nothing at {request.url.path}; /api/docs lists what there is"
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return f"{request.method} is not possible here"
    return error.detail


def _complaint(detail: Mapping[str, Any]) -> str:
    where: Sequence[str | int] = detail["loc"]
    if detail["type"] == "json_invalid":
        return f"body: not JSON at character {where[-1]}"
    return problem(where, detail)
