"""Payloads in JSON: as text where they are text, else as base64; which of the two stands beside it."""

from __future__ import annotations

import base64
import binascii
from http import HTTPStatus
from typing import Literal

from brookmq.ops.errors import ApiError

Encoding = Literal["plain", "base64"]


def encoded_payload(payload: bytes) -> tuple[str, Encoding]:
    """A payload as JSON can carry it."""
    try:
        return payload.decode(), "plain"
    except UnicodeDecodeError:
        return base64.b64encode(payload).decode(), "base64"


def decoded_payload(text: str, encoding: Encoding, where: str) -> bytes:
    """The bytes that a request means; ``where`` names the field in the complaint."""
    if encoding == "plain":
        return text.encode()
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ApiError(HTTPStatus.BAD_REQUEST, f"{where}: not base64") from None
