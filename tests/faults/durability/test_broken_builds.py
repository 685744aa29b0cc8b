"""The checker against nodes that are wrong on purpose: each must be caught, and for the right reason."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from brookmq.base.faults import BREAKS, Victim
from tests.faults.durability.campaign import Campaign, new_seed
from tests.faults.durability.stage import staged
from tests.faults.durability.strikes import Strike

ROUNDS = 3
PATIENCE_SECONDS = 3.0  # for what is lost
TIME_TO_ACKNOWLEDGE_SECONDS = 0.1


async def lose_what_is_under_way(campaign: Campaign) -> None:
    """The store dies at an append, and the node a moment later, in which it can still acknowledge."""
    await campaign.strike(Strike(Victim.STORE, "journal.append", after=3))
    await asyncio.sleep(TIME_TO_ACKNOWLEDGE_SECONDS)
    campaign.stage.kill(Victim.NODE)


async def kill_the_node(campaign: Campaign) -> None:
    await campaign.strike(Strike(Victim.NODE, seconds=campaign.chance.uniform(0.3, 1.0)))


async def kill_before_the_pubrec(campaign: Campaign) -> None:
    """The publishers have to send again what is stored."""
    await campaign.strike(Strike(Victim.NODE, "journal.stored", after=campaign.chance.randint(1, 5)))


CASES: dict[str, tuple[str, Callable[[Campaign], Awaitable[None]]]] = {
    "ack_before_append": ("LOST", lose_what_is_under_way),
    "cursor_too_early": ("LOST", kill_the_node),
    "dedup_off": ("REPEATED", kill_before_the_pubrec),
    "batches_swapped": ("REORDERED", kill_the_node),
}


@pytest.mark.parametrize("name", BREAKS)
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
