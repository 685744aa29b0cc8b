"""The checker against nodes that are wrong on purpose: each must be caught, and for the right reason."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from brookmq.base.faults import BREAKS, Victim
from brookmq.broker.keeping import PROGRESS_SECONDS
from tests.faults.durability.campaign import Campaign, new_seed
from tests.faults.durability.publisher import Topic
from tests.faults.durability.stage import staged
from tests.faults.durability.strikes import Strike

ROUNDS = 3
PATIENCE_SECONDS = 3.0  # for what is lost


@asynccontextmanager
async def frozen_store(campaign: Campaign, wanted: Callable[[Topic], bool]) -> AsyncIterator[None]:
    """All publishers are connected, nothing is under way when the store freezes, and only this is sent from then on."""
    topics = [publisher.topics for publisher in campaign.publishers]
    for publisher in campaign.publishers:
        publisher.restless, publisher.topics = False, []
    await campaign.until(lambda: all(each.connected and each.idle for each in campaign.publishers), "all are idle")
    with campaign.stage.frozen_store():
        for publisher, all_topics in zip(campaign.publishers, topics, strict=True):
            publisher.topics = list(filter(wanted, all_topics))
        yield
    for publisher, all_topics in zip(campaign.publishers, topics, strict=True):
        publisher.topics = all_topics


async def lose_what_is_under_way(campaign: Campaign) -> None:
    """What is acknowledged while the store writes nothing, and node and store die."""
    async with frozen_store(campaign, lambda topic: not topic.retain):  # those wait for another part of the store
        await campaign.flow()
        campaign.stage.kill(Victim.BOTH)


async def kill_the_node(campaign: Campaign) -> None:
    await campaign.strike(Strike(Victim.NODE, seconds=campaign.chance.uniform(0.3, 1.0)))


async def kill_while_all_are_behind(campaign: Campaign) -> None:
    """The windows are full, so that the journal has what nobody was sent, when progress is written."""
    for subscriber in campaign.subscribers:
        subscriber.stubborn = True
    await asyncio.sleep(1.5 * PROGRESS_SECONDS)
    campaign.stage.kill(Victim.NODE)
    for subscriber in campaign.subscribers:
        subscriber.stubborn = False


async def kill_before_the_pubrec(campaign: Campaign) -> None:
    """The publishers have to send again what is stored: with a store that does not answer, one batch is under way, and
    the next one has what was sent meanwhile, more than the publishers send at once."""
    async with frozen_store(campaign, lambda topic: topic.qos == 2):
        await campaign.until(lambda: all(publisher.full for publisher in campaign.publishers), "all windows are full")
        campaign.stage.ledger.order("journal.stored", Victim.NODE, after=2)
    await campaign.until(lambda: not campaign.stage.up, "the node dies")


CASES: dict[str, tuple[str, Callable[[Campaign], Awaitable[None]]]] = {
    "ack_before_append": ("LOST", lose_what_is_under_way),
    "cursor_too_early": ("LOST", kill_while_all_are_behind),
    "dedup_off": ("REPEATED", kill_before_the_pubrec),
    "batches_swapped": ("REORDERED", kill_the_node),
}
QUICK = ("ack_before_append",)  # the others in the long mode


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in BREAKS]
)
async def test_it_is_caught(name: str, tmp_path: Path) -> None:
    rule, strike = CASES[name]
    seed, begin = new_seed(), time.monotonic()
    async with staged(tmp_path, breaks=(name,)) as stage, Campaign(stage, "run", seed, pace=2) as campaign:
        for _ in range(ROUNDS):
            await strike(campaign)
            await campaign.flow()
        violations = await campaign.finish(PATIENCE_SECONDS)
        print(campaign.report(seed, begin))
        found = Counter(violation.rule for violation in violations)
        print(name, dict(found))
        assert found[rule], f"{name} was not caught"
