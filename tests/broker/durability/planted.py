"""Bugs that are put into the node on purpose: a simulation that does not find them proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from brookmq.broker import session_image
from brookmq.broker.group_reading import GroupReader
from brookmq.broker.keeping import Keeper
from brookmq.broker.restoring import Restoring
from brookmq.broker.session import Session
from brookmq.broker.wills import Wills
from brookmq.mqtt.kernel import acks
from tests.broker.durability.simulated_node import SimulatedNode

Bug = Callable[[pytest.MonkeyPatch], None]


def sent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """PUBLISH goes out while its packet id is on its way to the store."""
    sent = Keeper.sent

    def at_once(self: Keeper, session: Session, ids: bytes, qos: int, position: int, packets: bytes) -> None:
        sent(self, session, ids, qos, position, b"")
        if session.outlet is not None:
            session.outlet.put(packets)

    monkeypatch.setattr(Keeper, "sent", at_once)


def received_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """PUBREL goes out while PUBREC is on its way to the store."""

    def at_once(self: Keeper, session: Session, ids: bytes) -> None:
        if session.outlet is not None:
            session.outlet.put(acks(0x62, ids))

    monkeypatch.setattr(Keeper, "received", at_once)


def released_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """PUBCOMP goes out, and the store does not know that the packet id is free."""

    def unwritten(self: Keeper, session: Session, ids: bytes, answer: bytes) -> None:
        if session.outlet is not None:
            session.outlet.put(answer)

    monkeypatch.setattr(Keeper, "released", unwritten)


def cursor_is_written_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress says that everything was handed out, whatever the session could take."""
    monkeypatch.setattr(session_image, "cursors_of", lambda session, heads: heads)


def window_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress says how far a session is, and not what its client has not acknowledged."""
    monkeypatch.setattr(session_image, "window_of", lambda session: [])


def watermark_comes_before_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """What every live session has is said before the records of those sessions are written."""

    def write_slice(self: Keeper) -> None:
        self.write_watermark(self._heads)
        while self._writing:
            session = self._writing.pop()
            session.moved = False
            if session.kept:
                self.write_progress(session)

    monkeypatch.setattr(Keeper, "_write_slice", write_slice)


def journal_is_not_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash nobody looks for packet ids that only the journal knows to be open."""
    monkeypatch.setattr(Restoring, "look_through", lambda self, shard, groups: None)


def duplicates_are_not_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What may have been sent before a crash comes without DUP."""
    restore = Restoring._restore_session

    def unmarked(self: Restoring, state: Any) -> None:
        restore(self, state)
        self.sessions.by_client_id[state.client_id].dup_below = None

    monkeypatch.setattr(Restoring, "_restore_session", unmarked)


def group_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the beginning of a shared group is stored."""
    write_down = GroupReader.write_down

    def first_only(self: GroupReader) -> None:
        if self.written is None:
            write_down(self)

    monkeypatch.setattr(GroupReader, "write_down", first_only)


def group_is_written_ahead_of_its_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cursors of a shared group are stored before the windows of its members."""
    write_down = GroupReader.write_down

    def ahead(self: GroupReader) -> None:
        moved = [each.session for each in self.group.members if each.session.moved]
        for session in moved:
            session.moved = False
        write_down(self)
        for session in moved:
            session.moved = True

    monkeypatch.setattr(GroupReader, "write_down", ahead)


def subscriptions_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """SUBACK goes out while the subscription is on its way to the store."""
    subscribed = Keeper.subscribed

    def at_once(self: Keeper, session: Session, granted: Any, done: Callable[[], None]) -> None:
        subscribed(self, session, granted, lambda: None)
        done()

    monkeypatch.setattr(Keeper, "subscribed", at_once)


def standing_wills_are_published_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of a will stays when it is published."""
    monkeypatch.setattr(Wills, "_drop", lambda self, key, done=None: done and done())


def retained_is_not_regained(monkeypatch: pytest.MonkeyPatch) -> None:
    """A retained message that is in the journal counts as retained."""
    monkeypatch.setattr(Restoring, "_regain", lambda self, group, done: done())


def acknowledged_before_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash takes even what the store has answered."""

    def kill(self: SimulatedNode, random: Any) -> SimulatedNode:
        for log in self.journal.logs:
            if log.records:
                last = max(log.records)
                del log.records[last]
                log.last_sequence = last - 1
        return _kill(self, random)

    _kill = SimulatedNode.kill
    monkeypatch.setattr(SimulatedNode, "kill", kill)


BUGS: list[Bug] = [
    sent_is_not_waited_for,
    received_is_not_waited_for,
    released_is_not_written,
    cursor_is_written_early,
    window_is_not_written,
    watermark_comes_before_progress,
    journal_is_not_looked_through,
    duplicates_are_not_marked,
    group_is_not_written,
    group_is_written_ahead_of_its_members,
    subscriptions_are_not_waited_for,
    standing_wills_are_published_again,
    retained_is_not_regained,
    acknowledged_before_it_is_stored,
]
