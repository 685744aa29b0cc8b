"""Declared tables: raw messages, decoded ones, last values and windows, kept up to date by the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from fastapi import APIRouter, Response

from brookmq.base.rule_documents import TableBody
from brookmq.ops.api.parameters import View
from brookmq.ops.errors import ApiError
from brookmq.ops.names import NameInPath
from brookmq.ops.rule_view import TableInfo

router = APIRouter(tags=["rules"])


@router.get("/tables")
async def list_tables(view: View) -> Sequence[TableInfo]:
    """All declared tables, by name, and how they do."""
    return await view.rules().tables()


@router.get("/tables/{name}")
async def get_table(view: View, name: NameInPath) -> TableInfo:
    """One declared table."""
    for table in await view.rules().tables():
        if table.name == name:
            return table
    raise _unknown(name)


@router.put("/tables/{name}", responses={HTTPStatus.CREATED: {"model": TableInfo}})
async def put_table(view: View, response: Response, name: NameInPath, body: TableBody) -> TableInfo:
    """Declare a table, or change it."""
    table, created = await view.rules().put_table(name, body)
    if created:
        response.status_code = HTTPStatus.CREATED
    return table


@router.post("/tables/{name}/enable")
async def enable_table(view: View, name: NameInPath) -> TableInfo:
    """Keep a table up to date."""
    return await _switched(view, name, enabled=True)


@router.post("/tables/{name}/disable")
async def disable_table(view: View, name: NameInPath) -> TableInfo:
    """Leave a table as it is."""
    return await _switched(view, name, enabled=False)


@router.delete("/tables/{name}", status_code=HTTPStatus.NO_CONTENT)
async def delete_table(view: View, name: NameInPath) -> None:
    """Forget a declared table. Its files stay."""
    if not await view.rules().delete_table(name):
        raise _unknown(name)


async def _switched(view: View, name: str, *, enabled: bool) -> TableInfo:
    table = await view.rules().enable_table(name, enabled=enabled)
    if table is None:
        raise _unknown(name)
    return table


def _unknown(name: str) -> ApiError:
    return ApiError(HTTPStatus.NOT_FOUND, f"no declared table {name!r} on this node")
