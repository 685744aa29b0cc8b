"""A plugin for the tests: says no to some user names and topics, so that the node's refusals can be seen."""

from __future__ import annotations

from brookmq.access.plugins import NoSettings, Plugin, PluginContext
from brookmq.access.points import ALLOW, Access, ClientInfo, Credentials, Decision, Deny

EXPLANATION = "because this is what the test asks for"


def authenticate(credentials: Credentials) -> Decision:
    if credentials.client.username == "wrong":
        return Deny(0x86, EXPLANATION)
    if credentials.client.username == "banned":
        return Deny(0x87, EXPLANATION)
    return ALLOW


def authorize(_: ClientInfo, access: Access) -> Decision:
    refused = "forbidden" in access.topic or ("qos0-only" in access.topic and access.qos > 0)
    return Deny(0x87, EXPLANATION) if refused else ALLOW


class DoorPlugin(Plugin[NoSettings]):
    """Entry point `spec_door`."""

    async def start(self, context: PluginContext) -> None:
        context.hooks.register("authenticate", authenticate, sync=True)
        context.hooks.register("authorize", authorize, sync=True)
