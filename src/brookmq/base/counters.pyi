from typing import Final

HELP: Final[dict[str, str]]

class Counters:
    connections_opened: int
    connections_closed: int
    connects_accepted: int
    connects_refused: int
    disconnects_by_server: int
    keep_alive_timeouts: int
    connect_timeouts: int
    takeovers: int
    protocol_errors: int
    packets_too_large: int
    bytes_received: int
    bytes_sent: int
    packets_received: int
    publishes_received: int
    publishes_received_qos0: int
    publishes_received_qos1: int
    publishes_received_qos2: int
    publishes_duplicate: int
    publishes_denied: int
    publishes_without_receiver: int
    messages_sent: int
    messages_resent: int
    messages_queued: int
    messages_journaled: int
    messages_lost_to_retention: int
    messages_retained: int
    messages_delayed: int
    dropped_queue_full: int
    dropped_output_full: int
    dropped_offline_qos0: int
    dropped_expired: int
    dropped_too_large: int
    dropped_by_hook: int
    dropped_retained_limit: int
    dropped_delayed_limit: int
    subscribes: int
    subscribes_refused: int
    unsubscribes: int
    sessions_created: int
    sessions_resumed: int
    sessions_ended: int
    wills_published: int
    publishers_paused: int
    subscribers_lagging: int
    connections_refused_limit: int
    hook_errors: int
    topic_cache_misses: int
    def __init__(self) -> None: ...
    def as_dict(self) -> dict[str, int]: ...
