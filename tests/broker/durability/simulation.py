"""Clients, a node and its store, driven by one random number generator: a seed is a story, and always the same one."""

from __future__ import annotations

from collections import deque
from math import inf
from random import Random

from brookmq.broker.settings import Settings
from tests.broker.durability import ending
from tests.broker.durability.ledger import Ledger, PromiseError
from tests.broker.durability.plans import GROUP, RETAINED, roster
from tests.broker.durability.simulated_client import SimulatedClient
from tests.broker.durability.simulated_node import SimulatedNode
from tests.broker.durability.wills import WillLedger

TRACE_LINES = 400
STORE_WAIT = 10.0  # seconds for which a node waits for its store
WATERMARK_AGE_MAX = 7.0  # seconds: a crash may count a client as away for so much longer than it is


class StoryError(AssertionError):
    """A story with a bad end: its last lines, and the seed that tells it again. Why is its cause."""


class Simulation:
    def __init__(self, seed: int, steps: int) -> None:
        self.seed = seed
        self.steps = steps
        self.random = random = Random(seed)
        self.ledger = Ledger()
        self.wills = WillLedger(self.ledger)
        self.trace: deque[str] = deque(maxlen=TRACE_LINES)
        self.settings = Settings()
        self.settings.store_wait = STORE_WAIT
        self.settings.output_bytes_max = random.choice((1 << 20, 1 << 20, 800))
        self.node = SimulatedNode(settings=self.settings)
        self.answering = random.choice((0.95, 0.8, 0.5))  # how readily the store answers
        self.crash_rate = random.choice((0.0, 0.01, 0.03))
        self.stored_at = self.node.monotonic  # when nothing waited for the table of sessions
        self.clients = [SimulatedClient(plan, self.ledger, random, self.note) for plan in roster(random)]
        self.names = [client.name for client in self.clients]
        self.away_since: dict[str, tuple[float, float]] = {}  # earliest and latest, of kept sessions
        self.ledger.group_members = {each.name for each in self.clients if each.plan.shares}
        for client in self.clients:
            client.on_accepted = self._accepted
            client.on_cut = self._closed_by_node

    def note(self, text: str) -> None:
        self.trace.append(f"{self.ledger.step:5} {self.node.monotonic:8.1f} {text}")

    # -- running

    def run(self) -> None:
        try:
            for _ in range(self.steps):
                self._step()
            self.note("the end: the store answers, everybody comes")
            ending.everything_arrives(self.node, self.clients, self.ledger, self.wills)
            for topic in RETAINED:
                ending.check_retained(self.node, self.ledger, topic)
            ending.everybody_leaves(self.node, self.clients)
        except Exception as error:
            story = "\n".join(self.trace)
            raise StoryError(f"{story}\n\nseed {self.seed}: {type(error).__name__}: {error}") from error
        finally:
            self.node.loop.close()

    def _step(self) -> None:
        self.ledger.step += 1
        random = self.random
        chance = random.random()
        if chance < self.crash_rate:
            self._crash()
        elif chance < 0.15:
            self.node.pass_time(random.choice((0.1, 0.3, 1.1)))
        elif chance < 0.16:
            self._pass_much_time(random.choice((3, 12, 30)))
        elif chance < 0.22:
            self.node.sessions_table.begin_snapshot(random.choice(self.node.used_parts()))
        elif chance < 0.24:
            self.node.journal.unloaded = random.random() < 0.7
            self.node.journal.loaded.clear()
        for client in self.clients:
            self._move(client)
        if random.random() < 0.6:
            self.node.release(random, self.answering)
        self.node.check(self.names)
        if not self.node.sessions_table.unanswered:
            self.stored_at = self.node.monotonic
            self.wills.stored()

    def _move(self, client: SimulatedClient) -> None:
        """Maybe it reads, maybe it sends, maybe it begins something; maybe the loop of the node turns."""
        random = self.random
        chance = random.random()
        if chance < 0.3:
            client.unblock()
            client.read(random.choice((1, 3, 50)))
        elif chance < 0.6:
            client.flush(random.choice((1, 2, 8)))
        elif chance < 0.85:
            self._act(client)
        elif chance < 0.86 and client.link is not None and not client.link.closed:
            client.link.host.channel.outlet.block()
        if random.random() < 0.3:
            self.node.run(random.choice((1, 2, 5, 1000)))

    def _act(self, client: SimulatedClient) -> None:
        random, plan = self.random, client.plan
        if client.link is None:
            if random.random() < 0.5:
                self._connect(client)
            return
        if not client.connected or client.session is None:
            if random.random() < 0.05:
                self._drop(client)
            return
        chance = random.random()
        if plan.shares and plan.shares not in client.session.subscriptions and not client.requests:
            client.subscribe(plan.shares, random.choice(plan.qos))
        elif chance < 0.03:
            self._drop(client)
        elif chance < 0.05:
            self._disconnect(client)
        elif plan.publishes and (chance < 0.7 or not plan.filters):
            self._publish(client)
        elif plan.filters and len(client.requests) < 4 and (chance > 0.8 or len(client.session.subscriptions) < 2):
            self._change_subscription(client)

    def _change_subscription(self, client: SimulatedClient) -> None:
        random, session = self.random, client.session
        assert session is not None
        asked = {name for _, name in client.requests.values()}
        name = random.choice([name for name in client.plan.filters if name not in asked])
        if name in session.subscriptions and random.random() < 0.6:
            if len(session.subscriptions) > 3:
                client.unsubscribe(name)
        elif name not in session.subscriptions or random.random() < 0.3:
            client.subscribe(name, random.choice(client.plan.qos))

    def _publish(self, client: SimulatedClient) -> None:
        random = self.random
        topic, qos = random.choice(client.plan.publishes), random.choice((0, 1, 1, 2, 2))
        retain = topic.startswith("r/") and random.random() < 0.6
        count = random.choice((1, 1, 2, 5))
        client.publish([self.ledger.new_message(topic, qos, retain, client.name) for _ in range(count)])

    # -- connections

    def _connect(self, client: SimulatedClient) -> None:
        random, plan = self.random, client.plan
        if plan.may_end and random.random() < 0.2:
            client.clean_next = True
        earliest, _ = self.away_since.get(client.name, (self.node.now, 0.0))
        client.may_be_new = earliest + plan.expiry <= self.node.now
        will, delay = None, 0
        if plan.will_topics and random.random() < 0.5:
            topic = random.choice(plan.will_topics)
            will = self.ledger.new_message(topic, random.choice((1, 2)), topic[0] == "r", client.name)
            will.tells_publisher = False
            delay = random.choice((0, 2, 8)) if plan.version == 5 else 0
        self.wills.connecting(client.name, self.node.now)
        client.connect(self.node, will, delay)
        if random.random() < 0.9:
            client.flush(1)

    def _accepted(self, client: SimulatedClient, present: bool) -> None:
        """Session Present, as it has to be. [MQTT-3.2.2-2, -3]"""
        if not client.clean and client.session is not None:
            earliest, latest = self.away_since.get(client.name, (self.node.now, self.node.now))
            expiry = client.plan.expiry
            if not present and earliest + expiry > self.node.now:
                raise PromiseError(f"{client.name}: its session is gone")
            if present and latest + expiry + 1 < client.connecting_at:
                raise PromiseError(f"{client.name}: its session should have expired")
        self.wills.connected(client.name, client.will, client.will_delay)
        if client.name == "member-lazy" and not present:
            client.subscribe(GROUP, 1)

    def _drop(self, client: SimulatedClient) -> None:
        """Its network fails; the node may notice, or learn of it when the client comes back."""
        link = client.link
        assert link is not None
        if self.random.random() < 0.8 or not client.plan.expiry:
            self.note(f"{client.name} drops")
            link.close()
            self._leave(client, abnormal=True)
        else:
            self.note(f"{client.name} is gone, and the node does not know")
            self._leave(client, abnormal=True, noticed=False)

    def _disconnect(self, client: SimulatedClient) -> None:
        link = client.link
        assert link is not None
        if self.random.random() < 0.7:
            client.flush(100)
        if client.link is None or client.link.closed or client.link.busy:
            return
        client.disconnect(for_good=client.plan.may_end and self.random.random() < 0.2)
        link.close()
        self._leave(client, abnormal=False)

    def _closed_by_node(self, client: SimulatedClient) -> None:
        """It did so at any time since the client connected."""
        self._leave(client, abnormal=True)
        self.away_since[client.name] = (client.connecting_at, self.node.now)

    def _leave(self, client: SimulatedClient, *, abnormal: bool, noticed: bool = True) -> None:
        now = self.node.now
        latest = now if noticed else inf
        # without a CONNACK nobody knows whether the node has seen it at all since it left before
        earliest = now if client.connected else self.away_since.get(client.name, (now, now))[0]
        self.away_since[client.name] = (earliest, latest)
        if abnormal:
            delay_max = client.plan.expiry if not client.clean_next else 0
            self.wills.cut(client.name, now, latest, delay_max)
        else:
            self.wills.left(client.name)
        client.cut()

    # -- time and crashes

    def _pass_much_time(self, seconds: int) -> None:
        """Second by second; the store answers in time, unless it is silent for longer than the node waits."""
        silent = self.random.random() < 0.1
        self.note(f"{seconds} seconds pass{', the store is silent' if silent else ''}")
        if silent:
            self.wills.store_is_silent()
            for client in self.clients:
                client.store_is_silent()
        for _ in range(seconds):
            self.node.pass_time(1.0)
            if not silent:
                self.node.release_all()
                self.stored_at = self.node.monotonic

    def _crash(self) -> None:
        now = self.node.now
        self.note("the node dies")
        earliest = now - (self.node.monotonic - self.stored_at) - WATERMARK_AGE_MAX
        for client in self.clients:
            if self.random.random() < 0.3:
                client.read(self.random.randint(0, 5))  # what was on the wire
            since = self.away_since.get(client.name, (now, now))
            if client.link is not None or since[1] >= earliest:
                self.away_since[client.name] = (min(since[0], earliest), now)
            if client.link is not None:
                certain = client.connected and bool(client.plan.expiry)
                self.wills.died(client.name, earliest, now, certain)
                client.cut()
        self.wills.node_died(earliest, now)
        self.ledger.crashes += 1
        if self.random.random() < 0.2:
            self.node.monotonic += self.random.choice((0.5, 5.0))
        self.node = self.node.kill(self.random)
        self.stored_at = self.node.monotonic
        if self.random.random() < 0.7:
            self.node.pass_time(0.0)
            self.node.run_all()
            self.node.pass_time(0.0)
