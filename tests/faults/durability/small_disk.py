"""Run as a program on a small disk: publishers and subscribers go on through the end of the disk.

`python -m tests.faults.durability.small_disk DISK LOGS`, where DISK is a disk of some 96 MB. Prints what it saw; a
failed assertion is its exit code. What a node does about its store then, and how soon, is tested elsewhere; this is
about the messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from pathlib import Path

import uvloop

from brookmq.base.faults import Victim
from tests.faults.durability.campaign import Campaign, new_seed, verdict
from tests.faults.durability.stage import staged

CONFIG = '[store]\nwait = "2s"\n'
REFUSED_MIN = 5
FULL_SECONDS_MAX = 60.0
PIECE_BYTES = 4_096


def fill(filler: Path) -> None:
    """Take all the room that is left, against others who write."""
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:  # the end is ENOSPC
        while True:
            file.write(bytes(PIECE_BYTES))


def refusals(campaign: Campaign) -> int:
    return sum(publisher.refusals for publisher in campaign.publishers)


async def until_refused(campaign: Campaign, filler: Path) -> None:
    """Publishers are told that nothing can be stored: PUBACK and PUBREC 0x97, CONNACK 0x88."""
    before = refusals(campaign)
    await asyncio.to_thread(fill, filler)
    await campaign.until(lambda: refusals(campaign) - before >= REFUSED_MIN, "publishers are refused", FULL_SECONDS_MAX)


async def main(disk: Path, logs: Path) -> None:
    seed, begin, filler = new_seed(), time.monotonic(), disk / "filler"
    async with staged(logs, CONFIG, data=disk / "data") as stage, Campaign(stage, "run", seed) as campaign:
        await campaign.flow()
        await until_refused(campaign, filler)
        await asyncio.to_thread(filler.unlink)
        await campaign.flow()

        await until_refused(campaign, filler)
        stage.kill(Victim.BOTH)  # and it comes back on a disk that is still full
        lives = stage.life
        await campaign.until(lambda: stage.life > lives and stage.up, "the next life")
        await asyncio.to_thread(filler.unlink)
        await campaign.flow()

        violations = await campaign.finish()
        print(campaign.report(seed, begin), f"\n{refusals(campaign)} refusals")
        assert not violations, verdict(stage, violations)


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
