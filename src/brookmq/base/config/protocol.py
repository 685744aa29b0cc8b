"""What clients may do: ``[mqtt]``, ``[session]``, ``[retained]``, ``[delayed]``, ``[shared]`` and the like."""

from __future__ import annotations

from typing import Literal

from brookmq.base.config.section import Limit, Section, setting
from brookmq.base.config.values import (
    DAY,
    GIB,
    MIB,
    PACKET_SIZE_MAX,
    SECOND,
    UINT16_MAX,
    UINT32_MAX,
    ClientFilter,
    Duration,
    Pattern,
    Size,
    TopicFilter,
    WholeDuration,
)

SharedStrategy = Literal["random", "round_robin", "sticky", "hash_client", "hash_topic", "local"]


class Mqtt(Section):
    """``[mqtt]``: limits and features of the protocol. MQTT 5 clients are told them in CONNACK."""

    packet_size_max: Size = setting(
        MIB,
        "Largest packet that a client may send.",
        limit=Limit("DISCONNECT 0x95 (packet too large), closed. Nothing of the packet is kept in memory."),
        ge=64,
        le=PACKET_SIZE_MAX,
    )
    connect_timeout: Duration = setting(
        10 * SECOND,
        "Time from accepting a connection to its complete CONNECT, TLS and WebSocket handshakes included.",
        limit=Limit("Closed without an answer."),
        gt=0,
        le=DAY,
    )
    keep_alive_max: WholeDuration = setting(
        0,
        "Longest keep alive; 0 leaves it to the client.",
        limit=Limit(
            "MQTT 5 clients are given it as Server Keep Alive; for others it applies as if they had asked for it."
        ),
        ge=0,
        le=UINT16_MAX,
    )
    keep_alive_factor: float = setting(
        1.5,
        "A client that is silent for its keep alive times this is gone. The specification says 1.5.",
        limit=Limit("DISCONNECT 0x8D (keep alive timeout), closed, its will is published.", unit="times keep alive"),
        ge=1.0,
        le=10.0,
    )
    receive_max: int = setting(
        1024,
        "QoS 1 and 2 messages of one client that may be unfinished at a time (Receive Maximum).",
        limit=Limit("DISCONNECT 0x93 (receive maximum exceeded), closed.", unit="messages"),
        ge=1,
        le=UINT16_MAX,
    )
    topic_alias_max: int = setting(
        64,
        "Topic aliases that a client may use towards the node; 0 for none.",
        limit=Limit("A higher alias: DISCONNECT 0x94 (topic alias invalid), closed.", unit="aliases"),
        ge=0,
        le=UINT16_MAX,
    )
    topic_alias_out_max: int = setting(
        64,
        "Topic aliases that the node uses towards a client that allows them; 0 for none.",
        limit=Limit("Further topics are sent with their names.", unit="aliases"),
        ge=0,
        le=UINT16_MAX,
    )
    qos_max: int = setting(
        2,
        "Highest QoS.",
        limit=Limit(
            "PUBLISH above it: DISCONNECT 0x9B (QoS not supported). A will above it: CONNACK 0x9B. "
            "A subscription is granted this QoS.",
            unit="QoS",
        ),
        ge=0,
        le=2,
    )
    topic_levels_max: int = setting(
        128,
        "Levels of a topic name or filter.",
        limit=Limit(
            "PUBLISH: DISCONNECT 0x90 (topic name invalid). SUBSCRIBE: SUBACK 0x8F (topic filter invalid).",
            unit="levels",
        ),
        ge=1,
        le=UINT16_MAX,
    )
    topic_length_max: Size = setting(
        UINT16_MAX,
        "Bytes of a topic name or filter.",
        limit=Limit("PUBLISH: DISCONNECT 0x90 (topic name invalid). SUBSCRIBE: SUBACK 0x8F (topic filter invalid)."),
        ge=1,
        le=UINT16_MAX,
    )
    client_id_length_max: Size = setting(
        UINT16_MAX,
        "Bytes of a client id.",
        limit=Limit("CONNACK 0x85 (client identifier not valid), 0x02 for MQTT 3."),
        ge=23,
        le=UINT16_MAX,
    )
    subscriptions_max: int = setting(
        10_000,
        "Subscriptions of one client.",
        limit=Limit(
            "SUBACK 0x97 (quota exceeded), 0x80 for MQTT 3; the subscriptions that it has stay. "
            "More filters than that in one packet: DISCONNECT 0x97, closed.",
            unit="subscriptions",
        ),
        ge=1,
    )
    user_properties_max: int = setting(
        100,
        "User properties in one PUBLISH.",
        limit=Limit("DISCONNECT 0x97 (quota exceeded), closed.", unit="properties"),
        ge=0,
    )
    retain_available: bool = setting(True, "Retained messages. Off: PUBLISH with retain gets DISCONNECT 0x9A.")
    wildcard_available: bool = setting(True, "Wildcards in subscriptions. Off: SUBACK 0xA2.")
    shared_available: bool = setting(True, "Shared subscriptions. Off: SUBACK 0x9E.")
    subscription_ids_available: bool = setting(True, "Subscription identifiers. Off: SUBSCRIBE with one gets 0xA1.")
    payload_format_check: bool = setting(
        False, "Check that a payload declared as UTF-8 is UTF-8. If not: 0x99 (payload format invalid)."
    )
    response_information: str = setting(
        "", "Beginning of the topics for responses, given to clients that ask for it; empty for none."
    )
    server_reference: str = setting("", "Another server that clients are pointed to when this one sends them away.")


class Session(Section):
    """``[session]``: what survives a connection."""

    expiry_max: WholeDuration = setting(
        7 * DAY,
        "Longest life of a session without a connection; also the life of MQTT 3 sessions with clean session 0.",
        limit=Limit("A client that asks for more gets this, and is told so in CONNACK."),
        ge=0,
        le=UINT32_MAX,
    )
    inflight_max: int = setting(
        1024,
        "QoS 1 and 2 messages on their way to one client; its Receive Maximum may be lower.",
        limit=Limit("Further messages wait in the session's queue.", unit="messages"),
        ge=1,
        le=UINT16_MAX,
    )
    queue_count_max: int = setting(
        1000,
        "Messages waiting for one connected client whose session ends with its connection.",
        limit=Limit("As queue_full says; counted.", unit="messages"),
        ge=0,
    )
    queue_bytes_max: Size = setting(
        8 * MIB, "Bytes of these messages.", limit=Limit("As queue_full says; counted."), ge=0
    )
    queue_full: Literal["drop_oldest", "drop_newest"] = setting(
        "drop_oldest", "Which message is dropped when a queue is full."
    )
    count_max: int = setting(
        1_000_000,
        "Sessions on this node, connected or not.",
        limit=Limit(
            "A new client gets CONNACK 0x97 (quota exceeded), 0x03 for MQTT 3; who has a session comes in.",
            unit="sessions",
        ),
        ge=1,
    )


class Retained(Section):
    """``[retained]``."""

    enable: bool = setting(True, "Keep retained messages. Off: as mqtt.retain_available = false.")
    count_max: int = setting(
        1_000_000,
        "Retained messages, those of $SYS included; 0 for no limit.",
        limit=Limit("A message for a new topic is delivered but not retained; counted.", unit="messages"),
        ge=0,
    )
    bytes_max: Size = setting(
        GIB,
        "Bytes of all retained messages: topics, payloads and properties; 0 for no limit.",
        limit=Limit("A message that does not fit is delivered but not retained; counted."),
        ge=0,
    )
    payload_max: Size = setting(
        MIB,
        "Bytes of the payload of one retained message; 0 for no limit.",
        limit=Limit("A larger one is delivered but not retained; counted."),
        ge=0,
        le=PACKET_SIZE_MAX,
    )


class Delayed(Section):
    """``[delayed]``: publishing later, through ``$delayed/SECONDS/TOPIC``."""

    enable: bool = setting(True, "Accept messages to $delayed/SECONDS/TOPIC.")
    count_max: int = setting(
        100_000,
        "Messages waiting for their time; 0 for no limit.",
        limit=Limit(
            "PUBACK or PUBREC 0x97 (quota exceeded); with QoS 0 the message is dropped; counted.", unit="messages"
        ),
        ge=0,
    )
    bytes_max: Size = setting(
        256 * MIB,
        "Bytes of all messages waiting for their time; 0 for no limit.",
        limit=Limit("PUBACK or PUBREC 0x97 (quota exceeded); with QoS 0 the message is dropped; counted."),
        ge=0,
    )
    delay_max: WholeDuration = setting(
        4_294_967,
        "Longest delay.",
        limit=Limit("PUBACK or PUBREC 0x90 (topic name invalid); with QoS 0 the message is dropped; counted."),
        ge=1,
        le=UINT32_MAX,
    )


class SharedGroup(Section):
    """``[shared.groups.NAME]``."""

    strategy: SharedStrategy = setting(..., "Strategy of this group.")


class Shared(Section):
    """``[shared]``: shared subscriptions."""

    strategy: SharedStrategy = setting("round_robin", "Which member of a group gets a message.")
    groups: dict[str, SharedGroup] = setting(
        {}, "Groups with a strategy of their own.", examples=[{"workers": {"strategy": "hash_topic"}}]
    )


class Exclusive(Section):
    """``[exclusive]``: subscriptions that one client at a time can have, through ``$exclusive/TOPIC``."""

    enable: bool = setting(True, "Accept subscriptions to $exclusive/TOPIC. A second one to the same gets SUBACK 0x97.")


class Rewrite(Section):
    """``[[rewrite]]``: topics that stand for others; of several that match, the last one counts."""

    action: Literal["publish", "subscribe", "all"] = setting(
        "all", "Whether topic names, filters or both are rewritten."
    )
    filter: TopicFilter = setting(..., "Which topics this is about.")
    pattern: Pattern = setting(..., "Regular expression that the topic has to match too.")
    target: str = setting(..., "What it becomes: $1 … $9 are the groups of the pattern.", min_length=1)


class AutoSubscribe(Section):
    """``[[auto_subscribe]]``: subscriptions that every client gets when it connects."""

    filter: ClientFilter = setting(..., "Topic filter; ${client_id} and ${username} are filled in.")
    qos: int = setting(0, "QoS to grant.", ge=0, le=2)
    no_local: bool = setting(False, "Not the client's own messages.")
    retain_as_published: bool = setting(False, "Keep the retain flag as it was published.")
    retain_handling: int = setting(
        0, "Retained messages: 0 always, 1 only when the subscription is new, 2 never.", ge=0, le=2
    )


class SysTopics(Section):
    """``[sys_topics]``: figures of the node under ``$SYS/``."""

    enable: bool = setting(True, "Publish them.")
    interval: Duration = setting(10 * SECOND, "Time between two rounds.", ge=1, le=DAY)
