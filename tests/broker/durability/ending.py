"""How every story ends: the store answers, everybody is there and does what is to be done. Then all promises are kept,
and of those who leave for good nothing is left."""

from __future__ import annotations

from tests.broker.durability.ledger import Ledger, PromiseError
from tests.broker.durability.simulated_client import SimulatedClient
from tests.broker.durability.simulated_node import SimulatedNode
from tests.broker.durability.wills import WillLedger

ROUNDS_MAX = 4000  # until everything has arrived
ROUND_SECONDS = 0.5
QUIET_FOR_WILLS = 30  # rounds without anything: longer than a will is delayed
QUIET_MAX = QUIET_FOR_WILLS + 6
LONGEST_EXPIRY = 8 * 86400.0  # seconds


def everything_arrives(node: SimulatedNode, clients: list[SimulatedClient], ledger: Ledger, wills: WillLedger) -> None:
    quiet = 0
    for _ in range(ROUNDS_MAX):
        ledger.step += 1
        quiet = 0 if _round(node, clients, wills) else quiet + 1
        if quiet == QUIET_FOR_WILLS:
            wills.settle(node.now)
        if quiet == QUIET_MAX:
            break
    else:
        raise PromiseError("it does not come to rest")
    missing = ledger.unfulfilled()
    if missing:
        raise PromiseError("; ".join(missing))


def _round(node: SimulatedNode, clients: list[SimulatedClient], wills: WillLedger) -> bool:
    """Whether anything happened."""
    happened = False
    for client in clients:
        if client.link is None:
            wills.connecting(client.name, node.now)
            client.connect(node, None, 0)
        client.unblock()
        happened = client.read(1000) or happened
        happened = client.flush(1000) or happened
    node.pass_time(ROUND_SECONDS)
    node.release_all()
    node.check([client.name for client in clients])
    return happened


def check_retained(node: SimulatedNode, ledger: Ledger, topic: str) -> None:
    """The last that was acknowledged, or one that may have come behind it."""
    retained = [each for each in ledger.messages.values() if each.topic == topic and each.retain and each.sent_at]
    sure = [each for each in retained if each.acked_at is not None]
    kept = node.broker.retained.get(topic.encode(), node.now)
    if kept is None:
        if sure:
            raise PromiseError(f"{sure[-1]} is not retained")
        return
    value = ledger.messages[int(kept.payload.partition(b" ")[0])]
    newer = [each for each in sure if value.acked_at is not None and each.sent_at > value.acked_at]
    if value not in retained or newer:
        raise PromiseError(f"{value} is retained, and not {newer}")


def everybody_leaves(node: SimulatedNode, clients: list[SimulatedClient]) -> None:
    for client in clients:
        if client.plan.version == 5:
            client.disconnect(for_good=True)
    node.release_all()
    for client in clients:
        if client.link is not None:
            client.link.close()
    for _ in range(2):
        node.release_all()
        node.pass_time(LONGEST_EXPIRY)
    node.release_all()
    broker = node.broker
    left = [each.client_id for each in broker.sessions.by_client_id.values()]
    if left or broker.index.entry_count or broker.keeper.group_readers or broker.subscriptions.count:
        raise PromiseError(
            f"left behind: {left}, {broker.index.entry_count} filters, {len(broker.keeper.group_readers)} groups, "
            f"{broker.subscriptions.count} subscriptions"
        )
