"""What handlers ask for: the node, and the parameters that all listings share."""

from __future__ import annotations

import base64
import binascii
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Query, Request
from pydantic import AfterValidator

from brookmq.ops.errors import ApiError
from brookmq.ops.view import NodeView, Page, Row

PAGE_ROWS_DEFAULT = 100
PAGE_ROWS_MAX = 1000
"""A thousand rows are some 10 ms of work to make and to encode: what one request may take of the loop at a time."""


def _node_view(request: Request) -> NodeView:
    view: NodeView = request.app.state.view
    return view


def _cursor(
    after: Annotated[str, Query(description="`next` of the page before; empty for the first page")] = "",
) -> str:
    """The cursor inside of ``after``. It is encoded so that nobody takes it for a name and makes one up."""
    try:
        return base64.b64decode(after + "=" * (-len(after) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise ApiError(HTTPStatus.BAD_REQUEST, "query.after: not a `next` that a page had") from None


def sealed(page: Page[Row]) -> Page[Row]:
    """The page as it goes out, with its cursor encoded."""
    if page.next is None:
        return page
    return Page(page.items, base64.urlsafe_b64encode(page.next.encode()).decode().rstrip("="))


def _encodable(text: str) -> str:
    """JSON can write half a character (a lone surrogate); UTF-8, and so MQTT, can't. [MQTT-1.5.4-1]"""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a lone surrogate is not a character") from None
    return text


View = Annotated[NodeView, Depends(_node_view)]
After = Annotated[str, Depends(_cursor)]
Limit = Annotated[int, Query(ge=1, le=PAGE_ROWS_MAX, description="rows in a page")]
ENCODABLE = AfterValidator(_encodable)
Text = Annotated[str, ENCODABLE]
