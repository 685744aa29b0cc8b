"""Sessions by client id, cut into the parts in which the store keeps them.

One dictionary of a million entries would stop the loop for 60 ms whenever it grows; and a part is what is written as
one snapshot, so its sessions have to be found together.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

from brookmq.broker.session import Session
from brookmq.store.session_state import SESSION_KEY
from brookmq.store.table.interface import PARTS

_SEED = crc32(SESSION_KEY)


class ClientTable:
    """As much of a dictionary as is needed. Iterating stands changes: it goes from part to part, each copied."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Session]] = [{} for _ in range(PARTS)]
        self.count = 0
        self._last_id = ""  # asked about last, and its part: who comes and who goes is asked about several times
        self._last_part = self.parts[crc32(b"", _SEED) % PARTS]

    def part_of(self, client_id: str) -> dict[str, Session]:
        if client_id is not self._last_id:
            self._last_part = self.parts[crc32(client_id.encode(), _SEED) % PARTS]
            self._last_id = client_id
        return self._last_part

    def get(self, client_id: str) -> Session | None:
        return self.part_of(client_id).get(client_id)

    def __getitem__(self, client_id: str) -> Session:
        return self.part_of(client_id)[client_id]

    def __setitem__(self, client_id: str, session: Session) -> None:
        part = self.part_of(client_id)
        self.count += client_id not in part
        part[client_id] = session

    def __delitem__(self, client_id: str) -> None:
        del self.part_of(client_id)[client_id]
        self.count -= 1

    def __contains__(self, client_id: str) -> bool:
        return client_id in self.part_of(client_id)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[str]:
        for part in self.parts:
            if part:
                yield from [*part]

    def values(self) -> Iterator[Session]:
        for part in self.parts:
            if part:
                yield from [*part.values()]
