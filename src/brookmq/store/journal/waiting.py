"""Groups that are not stored yet, with those who wait for them, in the order in which they came."""

from __future__ import annotations

from typing import Protocol

from brookmq.store.journal.group import Group


class Ticket(Protocol):
    """Somebody who waits for a group."""

    def settle(self, reason: int, /) -> None:
        """Called once: 0 when it is stored, else the MQTT reason code to tell the publisher."""


class Waiting:
    """``tickets`` and ``times`` (when each came) belong together; they and ``groups`` are of one length until tickets
    leave before their groups do."""

    __slots__ = ("bytes", "everything", "groups", "messages", "tickets", "times")

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.tickets: list[Ticket | None] = []
        self.times: list[float] = []
        self.bytes = 0  # size of the groups
        self.messages = 0  # in the groups
        self.everything = False  # some of them came while the table of kept filters was loading

    def add(self, group: Group, ticket: Ticket | None, now: float) -> None:
        self.groups.append(group)
        self.tickets.append(ticket)
        self.times.append(now)
        self.bytes += group.size()
        self.messages += group.count

    def cut(self, bytes_max: int) -> Waiting:
        """Takes out those that came first, as many as fit, and at least one."""
        if self.bytes <= bytes_max:
            return self._first(len(self.groups))
        count = size = 0
        for group in self.groups:
            size += group.size()
            if count and size > bytes_max:
                break
            count += 1
        return self._first(count)

    def overdue(self, since: float) -> Waiting:
        """Takes out those that came then or earlier."""
        return self._first(_older(self.times, since))

    def overdue_tickets(self, since: float) -> list[Ticket | None]:
        """Takes out their tickets alone: the groups are under way and can't be called back."""
        count = _older(self.times, since)
        tickets = self.tickets[:count]
        del self.tickets[:count]
        del self.times[:count]
        return tickets

    def settle(self, reason: int) -> None:
        """Tells all who wait, in order; nobody waits then."""
        tickets, self.tickets, self.times = self.tickets, [], []
        settle_all(tickets, reason)

    def swap(self) -> None:
        """The wrong order, for the tests of those who check it."""
        half = len(self.groups) // 2
        self.groups = self.groups[half:] + self.groups[:half]
        self.tickets = self.tickets[half:] + self.tickets[:half]

    def _first(self, count: int) -> Waiting:
        taken = Waiting()
        taken.everything = self.everything
        if count == len(self.groups):
            taken.groups, taken.tickets, taken.times = self.groups, self.tickets, self.times
            taken.bytes, taken.messages = self.bytes, self.messages
            self.groups, self.tickets, self.times = [], [], []
            self.bytes = self.messages = 0
            self.everything = False
            return taken
        taken.groups, taken.tickets, taken.times = self.groups[:count], self.tickets[:count], self.times[:count]
        del self.groups[:count]
        del self.tickets[:count]
        del self.times[:count]
        for group in taken.groups:
            taken.bytes += group.size()
            taken.messages += group.count
        self.bytes -= taken.bytes
        self.messages -= taken.messages
        return taken


def settle_all(tickets: list[Ticket | None], reason: int) -> None:
    for ticket in tickets:
        if ticket is not None:
            ticket.settle(reason)


def _older(times: list[float], since: float) -> int:
    """How many of these rising times are not after ``since``."""
    count = 0
    while count < len(times) and times[count] <= since:
        count += 1
    return count
