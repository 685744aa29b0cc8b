"""The broker made from the configuration."""

from __future__ import annotations

import asyncio
from random import Random
from secrets import token_hex

from brookmq.access.authenticate import Authentication
from brookmq.access.hook import HookLimits
from brookmq.access.hooks import Hooks
from brookmq.base.alarms import Alarms
from brookmq.base.config import Config
from brookmq.base.counters import Counters
from brookmq.broker.broker import Broker
from brookmq.broker.delayed import DelayedMessages
from brookmq.broker.outlet import Turn
from brookmq.broker.retained import RetainedStore
from brookmq.broker.rewrite import RewriteRule, TopicRewriter
from brookmq.broker.settings import SessionLimits, Settings
from brookmq.mqtt.packets import SubscriptionRequest


def settings_of(config: Config) -> Settings:
    settings = Settings()
    mqtt = config.mqtt
    for name in (
        "packet_size_max",
        "connect_timeout",
        "keep_alive_max",
        "keep_alive_factor",
        "receive_max",
        "topic_alias_max",
        "topic_alias_out_max",
        "qos_max",
        "topic_levels_max",
        "topic_length_max",
        "client_id_length_max",
        "wildcard_available",
        "shared_available",
        "subscription_ids_available",
        "payload_format_check",
        "response_information",
        "server_reference",
        "subscriptions_max",
        "user_properties_max",
    ):
        setattr(settings, name, getattr(mqtt, name))
    settings.retain_available = mqtt.retain_available and config.retained.enable
    settings.store_wait = float(config.store.wait)
    settings.expiry_max = float(config.session.expiry_max)
    settings.session_count_max = config.session.count_max
    settings.output_bytes_max = config.edge.output_bytes_max
    settings.patience = float(config.edge.patience)
    settings.exclusive_enable = config.exclusive.enable
    settings.delayed_enable = config.delayed.enable
    settings.shared_strategy = config.shared.strategy
    settings.shared_strategies = {name: group.strategy for name, group in config.shared.groups.items()}
    return settings


def limits_of(config: Config) -> SessionLimits:
    session = config.session
    return SessionLimits(
        session.inflight_max,
        session.queue_count_max,
        session.queue_bytes_max,
        session.queue_full == "drop_oldest",
    )


def broker_of(config: Config, alarms: Alarms, loop: asyncio.AbstractEventLoop) -> Broker:
    counters = Counters()
    hooks = Hooks(alarms, HookLimits(answer_seconds_max=float(config.plugins.hook_time_limit)))
    retained = config.retained
    broker = Broker(
        settings_of(config),
        limits_of(config),
        Turn(loop.call_soon, counters),
        counters,
        hooks,
        Authentication(hooks, True if config.access.anonymous else None),
        RetainedStore(retained.count_max, retained.bytes_max, retained.payload_max),
        DelayedMessages(config.delayed.count_max, int(config.delayed.delay_max), config.delayed.bytes_max),
        TopicRewriter([RewriteRule(rule.action, rule.filter, rule.pattern, rule.target) for rule in config.rewrite]),
        Random(),  # noqa: S311 - picks members of shared groups
    )
    broker.index.capture = [filter.encode() for filter in config.journal.capture]
    broker.new_client_id = lambda: f"brook-{token_hex(12)}"  # nobody can guess another's and take it over
    broker.auto_subscriptions = [
        SubscriptionRequest(
            subscription.filter,
            subscription.qos,
            subscription.no_local,
            subscription.retain_as_published,
            subscription.retain_handling,
        )
        for subscription in config.auto_subscribe
    ]
    return broker
