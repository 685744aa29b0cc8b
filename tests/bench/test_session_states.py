"""Sessions that were written past the broker are there for whoever opens the table of sessions."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

from bench.session_states import fill_with_sessions, session_table

from brookmq.store.session_ops import fold
from brookmq.store.session_record import decode_state
from brookmq.store.session_state import SessionState
from brookmq.store.table.interface import PARTS, Entry


async def read_back(folder: Path) -> dict[bytes, SessionState]:
    found: dict[bytes, SessionState] = {}

    def on_part(_: int, states: list[Entry], ops: list[Entry]) -> None:
        found.update({key: decode_state(state) for key, state in states})
        for key, op in ops:
            state = fold(found.get(key), op)
            assert state is not None
            found[key] = state

    async with session_table(folder) as table:
        table.on_part = on_part
        for part in range(PARTS):
            if not table.loaded(part):
                loaded = asyncio.Event()
                table.load(part, loaded.set)
                await asyncio.wait_for(loaded.wait(), 10)
    return found


def test_every_session_is_there_with_its_filter(tmp_path: Path) -> None:
    fill_with_sessions(tmp_path, 3000)
    found = asyncio.run(read_back(tmp_path / "data"))
    assert found.keys() == {b"cbench-session-%d" % number for number in range(3000)}
    state = found[b"cbench-session-2999"]
    assert (state.client_id, state.expiry, state.connected, state.cursors) == (
        "bench-session-2999",
        math.inf,
        0,
        [0] * 4,
    )
    assert [(record.indexed, record.qos) for record in state.subscriptions.values()] == [(b"bench/stored/2999", 1)]
