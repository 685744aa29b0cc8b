"""Resources: connections that actions of rules share."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from fastapi import APIRouter, Response

from brookmq.base.rule_documents import ResourceBody
from brookmq.ops.api.parameters import View
from brookmq.ops.errors import ApiError
from brookmq.ops.names import NameInPath
from brookmq.ops.rule_view import ResourceInfo

router = APIRouter(tags=["rules"])


@router.get("/resources")
async def list_resources(view: View) -> Sequence[ResourceInfo]:
    """All resources, by name, and who uses them. Passwords and tokens are shown as `******`."""
    return await view.rules().resources()


@router.get("/resources/{name}")
async def get_resource(view: View, name: NameInPath) -> ResourceInfo:
    """One resource."""
    for resource in await view.rules().resources():
        if resource.name == name:
            return resource
    raise _unknown(name)


@router.put("/resources/{name}", responses={HTTPStatus.CREATED: {"model": ResourceInfo}})
async def put_resource(view: View, response: Response, name: NameInPath, body: ResourceBody) -> ResourceInfo:
    """Write a resource, or change it. `******` stands for the secret that is kept."""
    resource, created = await view.rules().put_resource(name, body)
    if created:
        response.status_code = HTTPStatus.CREATED
    return resource


@router.delete("/resources/{name}", status_code=HTTPStatus.NO_CONTENT)
async def delete_resource(view: View, name: NameInPath) -> None:
    """Forget a resource that no rule uses; 409 while one does."""
    if not await view.rules().delete_resource(name):
        raise _unknown(name)


def _unknown(name: str) -> ApiError:
    return ApiError(HTTPStatus.NOT_FOUND, f"no resource {name!r} on this node")
