"""Schemas of payloads that are not free JSON."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from fastapi import APIRouter, Response

from brookmq.base.rule_documents import SchemaBody
from brookmq.ops.api.parameters import View
from brookmq.ops.errors import ApiError
from brookmq.ops.names import NameInPath
from brookmq.ops.rule_view import SchemaInfo

router = APIRouter(tags=["rules"])


@router.get("/schemas")
async def list_schemas(view: View) -> Sequence[SchemaInfo]:
    """All schemas, by name, and who uses them."""
    return await view.rules().schemas()


@router.get("/schemas/{name}")
async def get_schema(view: View, name: NameInPath) -> SchemaInfo:
    """One schema."""
    for schema in await view.rules().schemas():
        if schema.name == name:
            return schema
    raise _unknown(name)


@router.put("/schemas/{name}", responses={HTTPStatus.CREATED: {"model": SchemaInfo}})
async def put_schema(view: View, response: Response, name: NameInPath, body: SchemaBody) -> SchemaInfo:
    """Write a schema, or change it. A change with which a rule would not work any more is refused."""
    schema, created = await view.rules().put_schema(name, body)
    if created:
        response.status_code = HTTPStatus.CREATED
    return schema


@router.delete("/schemas/{name}", status_code=HTTPStatus.NO_CONTENT)
async def delete_schema(view: View, name: NameInPath) -> None:
    """Forget a schema that nobody uses; 409 while somebody does."""
    if not await view.rules().delete_schema(name):
        raise _unknown(name)


def _unknown(name: str) -> ApiError:
    return ApiError(HTTPStatus.NOT_FOUND, f"no schema {name!r} on this node")
