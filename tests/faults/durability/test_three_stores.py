"""Everything is kept three times: the loss of one store, of all at once and of the node loses nothing."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest

from brookmq.base.faults import Victim
from tests.faults.durability.campaign import Campaign, new_seed, verdict
from tests.faults.durability.stage import staged
from tests.faults.durability.strikes import MOMENT_SECONDS_MAX
from tests.store.three_stores import ThreeStores, three_stores

DEAD_SECONDS = (0.2, 3.0)  # that a killed store stays dead
WAIT = "20s"  # longer than an election on a machine that has other work, too
ONE, ALL, NODE = "one", "all", "node"
SHORT = [ONE, NODE, ONE, ALL]
LONG = [ONE] * 30 + [ALL] * 10 + [NODE] * 20


def config_of(stores: ThreeStores) -> str:
    user, password = stores.credentials
    return f'[store]\nservers = {stores.addresses!r}\nuser = "{user}"\npassword = "{password}"\nwait = "{WAIT}"\n'


async def strike(campaign: Campaign, stores: ThreeStores, what: str) -> None:
    chance = campaign.chance
    await asyncio.sleep(chance.uniform(0, MOMENT_SECONDS_MAX))
    if what == NODE:
        campaign.stage.kill(Victim.NODE)
        return
    if what == ALL:
        stores.kill_all()
    else:
        stores.kill(chance.choice(stores.running))
    campaign.stage.kills += 1
    await asyncio.sleep(chance.uniform(*DEAD_SECONDS))
    stores.start_all()


async def run(tmp_path: Path, plan: list[str]) -> None:
    seed, begin = new_seed(), time.monotonic()
    random.Random(seed).shuffle(plan)
    with three_stores(tmp_path / "stores", tls=False) as stores:
        await asyncio.to_thread(stores.wait_ready)
        async with staged(tmp_path, config_of(stores)) as stage, Campaign(stage, "run", seed, pace=0.5) as campaign:
            for what in plan:
                await strike(campaign, stores, what)
                await campaign.flow()
            violations = await campaign.finish()
            print(campaign.report(seed, begin))
            assert not violations, verdict(stage, violations)


async def test_some_kills(tmp_path: Path) -> None:
    await run(tmp_path, list(SHORT))


@pytest.mark.long
async def test_many_kills(tmp_path: Path) -> None:
    await run(tmp_path, list(LONG))
