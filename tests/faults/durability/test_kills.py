"""Node, store and both are killed again and again, and nothing that was acknowledged is lost."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from brookmq.base.faults import Victim
from tests.faults.durability.campaign import Campaign, new_seed, verdict
from tests.faults.durability.stage import staged

VICTIMS = (Victim.NODE, Victim.STORE, Victim.BOTH)
KILLS = 30
LONG_KILLS = 1_000
LONG_CHAPTERS = 20  # histories are kept in memory; the node's folder is the same for all
HITS_MIN = 10  # at each point, in the long mode


async def test_without_kills(tmp_path: Path) -> None:
    """Clients come and go: what the checker says about a node that lives."""
    seed, begin = new_seed(), time.monotonic()
    async with staged(tmp_path) as stage, Campaign(stage, "quiet", seed) as campaign:
        for _ in range(40):
            await campaign.flow()
        violations = await campaign.finish()
        print(campaign.report(seed, begin))
        assert not violations, verdict(stage, violations)


async def test_thirty_kills(tmp_path: Path) -> None:
    seed, begin = new_seed(), time.monotonic()
    async with staged(tmp_path) as stage, Campaign(stage, "run", seed) as campaign:
        await campaign.strike_all(KILLS, VICTIMS)
        violations = await campaign.finish()
        print(campaign.report(seed, begin))
        assert not violations, verdict(stage, violations)
        assert not campaign.missed, "each point is reached within seconds"
        assert all(stage.ledger.fired().values()), stage.ledger.fired()


@pytest.mark.long
async def test_a_thousand_kills(tmp_path: Path) -> None:
    seed, begin = new_seed(), time.monotonic()
    async with staged(tmp_path) as stage:
        for chapter in range(LONG_CHAPTERS):
            stage.history.clear()
            async with Campaign(stage, f"run{chapter}", seed) as campaign:
                await campaign.strike_all(LONG_KILLS // LONG_CHAPTERS, VICTIMS)
                violations = await campaign.finish()
                print(campaign.report(seed, begin), flush=True)
                assert not violations, verdict(stage, violations)
        assert min(stage.ledger.fired().values()) >= HITS_MIN, stage.ledger.fired()
