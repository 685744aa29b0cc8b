"""Rules: kept, looked at by Spark before they are, tried on sample messages, switched on and off."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import Field

from brookmq.base.rule_documents import ACTIONS_MAX, Action, Document, RuleBody, SchemaBody, SqlText
from brookmq.base.sample_messages import SAMPLES_MAX, SampleMessage
from brookmq.ops.api.parameters import View
from brookmq.ops.errors import ApiError
from brookmq.ops.names import NameInPath
from brookmq.ops.rule_view import CheckedRule, RuleInfo, TriedRule

router = APIRouter(tags=["rules"])

RULE_EXAMPLE: dict[str, Any] = {
    "sql": 'SELECT payload.temp AS t, client_id FROM "sensors/#" WHERE payload.temp > 30',
    "actions": [{"type": "delta", "path": "tables/hot", "fallbacks": [{"type": "console"}]}],
}


class CheckBody(Document):
    """A rule that is not kept. ``schema`` is the name of one, or a schema itself."""

    sql: SqlText
    schema_given: Annotated[str | SchemaBody | None, Field(alias="schema")] = None


class RuleCheck(CheckBody):
    actions: Annotated[list[Action], Field(max_length=ACTIONS_MAX)] = Field(default_factory=list)


class RuleTest(CheckBody):
    messages: Annotated[list[SampleMessage], Field(min_length=1, max_length=SAMPLES_MAX)]


@router.get("/rules")
async def list_rules(view: View) -> Sequence[RuleInfo]:
    """All rules, by name, and how they do."""
    return await view.rules().rules()


@router.get("/rules/{name}")
async def get_rule(view: View, name: NameInPath) -> RuleInfo:
    """One rule. Passwords and tokens are shown as `******`."""
    return _found(await view.rules().rule(name), name)


@router.put("/rules/{name}", responses={HTTPStatus.CREATED: {"model": RuleInfo}})
async def put_rule(view: View, response: Response, name: NameInPath, body: RuleBody) -> RuleInfo:
    """Write a rule, or change it. It is compiled and looked at by Spark before it is kept, which takes a moment; the
    first time since a while it takes as long as Spark needs to start. `******` stands for the secret that is kept."""
    rule, created = await view.rules().put_rule(name, body)
    if created:
        response.status_code = HTTPStatus.CREATED
    return rule


@router.delete("/rules/{name}", status_code=HTTPStatus.NO_CONTENT)
async def delete_rule(view: View, name: NameInPath) -> None:
    """Forget a rule. What it has written stays."""
    if not await view.rules().delete_rule(name):
        raise _unknown(name)


@router.post("/rules/{name}/enable")
async def enable_rule(view: View, name: NameInPath) -> RuleInfo:
    """Let a rule run: it goes on where it was."""
    return _found(await view.rules().enable_rule(name, enabled=True), name)


@router.post("/rules/{name}/disable")
async def disable_rule(view: View, name: NameInPath) -> RuleInfo:
    """Let a rule rest."""
    return _found(await view.rules().enable_rule(name, enabled=False), name)


@router.post("/rules/check")
async def check_rule(view: View, body: RuleCheck) -> CheckedRule:
    """What comes out of a rule, without keeping it. A mistake is answered with its line and column in `details`."""
    return await view.rules().check_rule(body.sql, body.schema_given, body.actions)


@router.post("/rules/test")
async def test_rule(view: View, body: RuleTest) -> TriedRule:
    """A rule on sample messages: the rows that come out."""
    messages = []
    for number, message in enumerate(body.messages):
        try:
            messages.append(message.columns())
        except ValueError as error:
            raise ApiError(HTTPStatus.BAD_REQUEST, f"body.messages.{number}.payload: {error}") from None
    return await view.rules().test_rule(body.sql, body.schema_given, messages)


def _found(rule: RuleInfo | None, name: str) -> RuleInfo:
    if rule is None:
        raise _unknown(name)
    return rule


def _unknown(name: str) -> ApiError:
    return ApiError(HTTPStatus.NOT_FOUND, f"no rule {name!r} on this node")
