"""What must hold in a broker after anything that peers may do: the invariants of its parts, a bound on everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brookmq.broker.channel import Channel
from brookmq.broker.channel_state import CONNECTED
from brookmq.broker.outlet import OPEN, PRESSED, Outlet
from brookmq.broker.session import Session
from brookmq.mqtt.codec import PacketError, decode, encode
from brookmq.mqtt.kernel import frame
from brookmq.mqtt.packets import Connect
from fuzz.peer import Peer, require

if TYPE_CHECKING:
    from fuzz.world import World

SLACK = 6144  # bytes beyond a limit in an outlet: answers and messages to what came in with one read


def check(world: World) -> None:
    """After each step."""
    broker = world.broker
    sessions = broker.sessions.by_client_id
    settings = broker.settings
    for client_id in sessions:
        session = sessions[client_id]
        require(session.client_id == client_id, "a session under another client's name")
        require(session.channel is not None or session.kept, "a session that nobody holds is not kept")
        check_session(world, session)
    here = [session for session in sessions.values() if session.channel is not None]
    require(broker.sessions.connected_count == len(here), "connected_count is wrong")
    require(len(sessions) <= settings.session_count_max, "more sessions than allowed")
    require(broker.subscriptions.count == sum(len(s.subscriptions) for s in sessions.values()), "subscriptions.count")
    for peer in world.peers:
        check_channel(peer.channel)
        check_outlet(world, peer)
    broker.retained.check_invariants()
    require(broker.retained.count <= broker.retained.count_max, "more retained messages than allowed")
    broker.delayed.check_invariants()
    require(len(broker.turn.pressed) == len(set(broker.turn.pressed)), "an outlet pressed twice")
    most = settings.subscriptions_max * settings.session_count_max
    require(world.soon or len(broker.replays.waiting) <= most, "more replays than subscriptions")


def check_codec(data: bytes, version: int) -> None:
    """What can be read can be written, and reads the same again. ``data``: the first byte of a packet and its body."""
    try:
        packet = decode(data[0], data[1:], version)
    except PacketError:
        return
    if isinstance(packet, Connect):
        version = packet.version
    written = encode(packet, version)
    body, end = frame(written, 0)
    require(end == len(written), "a packet whose length is not its length", written)
    require(decode(written[0], written[body:], version) == packet, "another packet when it is read again", packet)


def check_session(world: World, session: Session) -> None:
    session.check_invariants()
    limits = session.limits
    connected = session.channel is not None and session.channel.state == CONNECTED  # its CONNACK may wait for the store
    require((session.outlet is not None) == connected, "an outlet without a connection, or the opposite")
    require(len(session.subscriptions) <= world.broker.settings.subscriptions_max, "more subscriptions than allowed")
    require(len(session.queue or ()) <= limits.queue_count_max, "a queue beyond its count")
    alone = len(session.queue or ()) == 1  # a message that is larger than the whole queue still gets through
    require(session.queue_bytes <= limits.queue_bytes_max or alone, "a queue beyond its bytes")
    if session.window is not None:
        require(session.window.count <= limits.inflight_max, "more in flight than allowed")
        require(session.window.limit == session.window_limit, "a window with another limit than its session")
    require(len(session.aliases or ()) <= session.alias_max, "more topic aliases than allowed")
    if session.open_ids is not None:
        open_count = int.from_bytes(session.open_ids.bits, "big").bit_count()
        require(session.open_ids.count == open_count, "open_ids.count is wrong")


def check_channel(channel: Channel) -> None:
    settings = channel.settings
    if channel.state == CONNECTED:
        session = channel.session
        require(session is not None and session.channel is channel, "connected without its session")
        require(session is not None and session.outlet is channel.outlet, "connected to another outlet")
        require(channel.client is not None, "connected and nobody knows who")
        require(len(channel.aliases or ()) <= settings.topic_alias_max, "more inbound aliases than allowed")
    if channel.partial is not None and not channel.suspended:
        require(len(channel.partial) <= settings.packet_size_max, "an unfinished packet beyond the limit")
        require(len(channel.partial) < channel.need, "a finished packet that is not handled")


def check_outlet(world: World, peer: Peer) -> None:
    outlet: Outlet = peer.outlet
    kept = len(outlet.chunk or b"") + sum(len(part) for part in outlet.more or ())
    require(outlet.size == kept, "outlet.size is not its size", outlet.size, kept)
    require(outlet.size <= outlet.limit + SLACK, "an outlet beyond its limit", outlet.size)
    require((outlet.state == PRESSED) == (outlet in world.broker.turn.pressed), "pressed, or not")
    require(outlet.waiters is None or outlet.state != OPEN, "somebody waits for an outlet that is open")


def check_end(world: World) -> None:
    """When all connections are gone and all sessions have ended, nothing is left."""
    broker = world.broker
    index, subscriptions = broker.index, broker.subscriptions
    require(not broker.sessions.by_client_id, "sessions are left", [*broker.sessions.by_client_id])
    require(broker.sessions.connected_count == 0, "connected_count is not 0")
    require(not subscriptions.count and not subscriptions.shared_count, "subscriptions are left")
    require(not subscriptions.exclusive, "exclusive subscriptions are left")
    require(not index.entry_count and not index.exact and index.root.unused(), "filters are left in the index")
    require(not broker.turn.pressed and not broker.turn.dirty, "outlets are left")
    require(not broker.replays.waiting, "replays are left")
    require(not world.waiting and not world.soon, "something still waits")
