"""A broker from three bytes: each bit switches on something that makes packets take another way.

All limits are far below their defaults, so that short inputs reach them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from brookmq.access.authenticate import Authentication
from brookmq.access.hook import HookLimits
from brookmq.access.hooks import Hooks
from brookmq.access.points import DROP, IGNORE, Access, Allow, ClientInfo, Credentials, Decision, Deny
from brookmq.base.alarms import Alarms
from brookmq.base.counters import Counters
from brookmq.base.errors import PeerError
from brookmq.base.message import Message
from brookmq.broker.broker import Broker
from brookmq.broker.delayed import DelayedMessages
from brookmq.broker.delivering import DeliverHooks
from brookmq.broker.outlet import Turn
from brookmq.broker.retained import RetainedStore
from brookmq.broker.rewrite import RewriteRule, TopicRewriter
from brookmq.broker.settings import SessionLimits, Settings
from brookmq.mqtt import reasons
from brookmq.mqtt.packets import SubscriptionRequest

# first byte: plugins
AUTHORIZE, AUTHORIZE_WAITS, PUBLISH, PUBLISH_WAITS, DELIVER, DELIVER_WAITS, AUTHENTICATE_WAITS, REWRITE = (
    1 << bit for bit in range(8)
)
# second byte: the node's configuration
MOUNTED, FORMAT_CHECK, NARROW, REDIRECTS, DROP_NEWEST, AUTO_SUBSCRIBE, STICKY, EVENTS = (1 << bit for bit in range(8))
# third byte: the main client
VERSIONS = (5, 4, 3, 5)  # its lowest two bits
SMALL_WINDOW, SMALL_PACKETS, ALIASES, NO_PROBLEM_INFORMATION, TRANSIENT, METHOD = (1 << bit for bit in range(2, 8))

METHOD_NAME = "SCRAM-SHA-256"  # of the catalogue's packets; here a mechanism of two rounds
RULES = [RewriteRule("all", "old/#", r"^old/(.+)$", "f/$1"), RewriteRule("subscribe", "mine", "^mine$", "f/%c")]


class Rounds:
    """Enhanced authentication: asks once more after the first data, refuses ``no``."""

    def __init__(self) -> None:
        self.asked = False

    def step(self, data: bytes | None) -> tuple[bool, bytes | None, str | None]:
        if data == b"no":
            raise PeerError(reasons.NOT_AUTHORIZED, "refused")
        if self.asked:
            return True, b"welcome", "somebody"
        self.asked = True
        return False, b"and?", None


class Mechanism:
    def begin(self, client: ClientInfo) -> Rounds:
        return Rounds()


def settings(second: int) -> Settings:
    made = Settings()
    made.packet_size_max = 2048
    made.output_bytes_max = 1024
    made.receive_max = 8
    made.topic_alias_max = made.topic_alias_out_max = 4
    made.topic_levels_max = 16
    made.topic_length_max = 256
    made.client_id_length_max = 64
    made.subscriptions_max = 20
    made.user_properties_max = 5
    made.session_count_max = 8
    made.expiry_max = 3600.0
    made.payload_format_check = bool(second & FORMAT_CHECK)
    made.shared_strategy = "sticky" if second & STICKY else "round_robin"
    made.response_information = "answers/"
    if second & NARROW:
        made.qos_max = 1
        made.retain_available = made.wildcard_available = made.shared_available = False
        made.subscription_ids_available = False
        made.keep_alive_max = 60
        made.topic_alias_max = 0
    return made


def broker(
    configuration: bytes,
    call_soon: Callable[[Callable[[], None]], object],
    run: Callable[[Awaitable[Any], Callable[[Any], None]], None],
    clock: Callable[[], float],
) -> Broker:
    first, second = configuration[0], configuration[1]
    counters = Counters()
    hooks = Hooks(Alarms(), HookLimits(hold_seconds_max=3600.0), clock)
    made = settings(second)
    limits = SessionLimits(6, 10, 2000, not second & DROP_NEWEST)
    node = Broker(
        made,
        limits,
        Turn(call_soon, counters),
        counters,
        hooks,
        Authentication(hooks),
        RetainedStore(16, 4096, 1024),
        DelayedMessages(4),
        TopicRewriter(RULES if first & REWRITE else []),
        Random(1),
    )
    node.mechanisms[METHOD_NAME] = Mechanism()
    node.intercept = DeliverHooks(hooks, run, counters)
    if second & AUTO_SUBSCRIBE:
        node.auto_subscriptions = [
            SubscriptionRequest("auto/${client_id}", 1),
            SubscriptionRequest("${username}", 1),
            SubscriptionRequest("f/#", 2),
            SubscriptionRequest("a/+b", 0),
        ]
    _register(hooks, first, second)
    return node


def _register(hooks: Hooks, first: int, second: int) -> None:
    """Hooks that answer in place; ``…_waits`` makes the channel wait for them all the same, without a loop."""
    if first & AUTHORIZE:
        hooks.register("authorize", _authorize, "fuzz", sync=True)
        hooks.authorize_waits = bool(first & AUTHORIZE_WAITS)
    if first & PUBLISH:
        hooks.register("publish", _publish, "fuzz", sync=True)
        hooks.publish_waits = bool(first & PUBLISH_WAITS)
    if first & DELIVER:
        hooks.register("deliver", _publish, "fuzz", sync=True)
        hooks.deliver_waits = bool(first & DELIVER_WAITS)
    if first & AUTHENTICATE_WAITS:
        hooks.register("authenticate", _authenticate, "fuzz", sync=True)
        hooks.authenticate_waits = True
    if second & EVENTS:
        for point in ("client_online", "client_off", "session_created", "session_resumed", "session_ended"):
            hooks.register(point, _event, "fuzz", sync=True)
        for point in ("subscribe", "unsubscribe"):
            hooks.register(point, _event, "fuzz", sync=True)


def _authorize(client: ClientInfo, access: Access) -> Decision:
    return Deny(reasons.NOT_AUTHORIZED) if "deny" in access.topic else IGNORE


def _authenticate(credentials: Credentials) -> Decision:
    if credentials.client.username == "deny":
        return Deny(reasons.BAD_USER_NAME_OR_PASSWORD, "denied")
    return Allow(superuser=credentials.client.username == "root")


def _publish(client: ClientInfo, message: Message) -> object:
    if b"drop" in message.topic:
        return DROP
    if b"change" in message.topic:
        return Message(b"f/changed", message.payload, min(message.qos, 1), message.retain, message.properties)
    if b"crash" in message.topic:
        raise ValueError("a plugin that fails")
    return None


def _event(event: object) -> None:
    """Somebody listens: the events have to be made."""
