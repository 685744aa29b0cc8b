"""What users do with MQTT, done with the client libraries that they use."""

from __future__ import annotations

import asyncio

import pytest

from tests.interop.client import Client, Will
from tests.interop.conftest import KINDS, KINDS_5, Kind, Opener

LARGE = bytes(range(256)) * 3600  # 900 KiB: just under the default limit of a packet
QUICK_KINDS = [Kind("paho", "tcp", 4), Kind("paho", "ws", 5), Kind("gmqtt", "tls", 5), Kind("aiomqtt", "tcp", 5)]

every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)
every_kind_5 = pytest.mark.parametrize("kind", KINDS_5, ids=str)


async def close(*clients: Client) -> None:
    for client in clients:
        await client.disconnect()


async def receive_among(members: list[Client], count: int) -> list[int]:
    """The numbers that several clients got between them."""
    waiting = [asyncio.ensure_future(member.receive()) for member in members]
    received: list[int] = []
    while len(received) < count:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            received.append(int(task.result().payload))
            which = waiting.index(task)
            waiting[which] = asyncio.ensure_future(members[which].receive())
    for task in waiting:
        task.cancel()
    return received


@every_kind
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_publish_and_subscribe(client: Opener, topic: str, kind: Kind, qos: int) -> None:
    subscriber, publisher = await client(kind), await client(kind)
    assert await subscriber.subscribe(f"{topic}/+/temperature", qos) == qos
    for number in range(20):
        await publisher.publish(f"{topic}/room{number}/temperature", b"%d" % number, qos)
        await publisher.publish(f"{topic}/room{number}/humidity", b"not asked for", qos)
    received = await subscriber.receive_many(20)
    assert [(m.topic, m.payload, m.qos, m.retain) for m in received] == [
        (f"{topic}/room{number}/temperature", b"%d" % number, qos, False) for number in range(20)
    ]
    await subscriber.unsubscribe(f"{topic}/+/temperature")
    await subscriber.subscribe(f"{topic}/end", qos)
    await publisher.publish(f"{topic}/room0/temperature", b"no longer asked for", qos)
    await publisher.publish(f"{topic}/end", b"", qos)
    assert (await subscriber.receive()).topic == f"{topic}/end"
    assert subscriber.nothing_more()
    await close(subscriber, publisher)


@pytest.mark.parametrize("receiving", QUICK_KINDS, ids=str)
@pytest.mark.parametrize("sending", QUICK_KINDS, ids=str)
async def test_between_libraries_versions_and_transports(
    client: Opener, topic: str, sending: Kind, receiving: Kind
) -> None:
    publisher, subscriber = await client(sending), await client(receiving)
    assert await subscriber.subscribe(f"{topic}/#", 2) == 2
    for qos in (0, 1, 2):
        await publisher.publish(f"{topic}/süd/温度", b"\x00\xff", qos)
    received = await subscriber.receive_many(3)
    assert sorted((m.topic, m.payload, m.qos) for m in received) == [
        (f"{topic}/süd/温度", b"\x00\xff", qos) for qos in (0, 1, 2)
    ]
    await close(publisher, subscriber)


@every_kind
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_large_payload(client: Opener, topic: str, kind: Kind, qos: int) -> None:
    one = await client(kind)
    await one.subscribe(topic, qos)
    await one.publish(topic, LARGE, qos)
    message = await one.receive()
    assert message.payload == LARGE
    assert message.qos == qos
    await one.publish(topic, b"", qos)
    assert (await one.receive()).payload == b""
    await close(one)


@every_kind
@pytest.mark.parametrize("qos", [1, 2])
async def test_a_burst_stays_in_order(client: Opener, topic: str, kind: Kind, qos: int) -> None:
    """More messages at once than either side lets be under way."""
    subscriber, publisher = await client(kind), await client(kind)
    await subscriber.subscribe(topic, qos)
    await asyncio.gather(*(publisher.publish(topic, b"%d" % number, qos) for number in range(300)))
    received = await subscriber.receive_many(300)
    assert [int(m.payload) for m in received] == list(range(300))
    assert subscriber.nothing_more()
    await close(subscriber, publisher)


@every_kind
async def test_retained(client: Opener, topic: str, kind: Kind) -> None:
    publisher = await client(kind)
    await publisher.publish(f"{topic}/a", b"first", 1, True)
    await publisher.publish(f"{topic}/a", b"second", 1, True)
    await publisher.publish(f"{topic}/b", b"gone", 1, True)
    await publisher.publish(f"{topic}/b", b"", 1, True)
    late = await client(kind)
    await late.subscribe(f"{topic}/#", 1)
    message = await late.receive()
    assert (message.topic, message.payload, message.qos, message.retain) == (f"{topic}/a", b"second", 1, True)
    await publisher.publish(f"{topic}/a", b"live", 1, True)
    live = await late.receive()
    assert (live.payload, live.retain) == (b"live", False)
    await publisher.publish(f"{topic}/a", b"", 1, True)
    assert (await late.receive()).payload == b""
    assert late.nothing_more()
    await close(publisher, late)


@every_kind
async def test_will(client: Opener, topic: str, kind: Kind) -> None:
    watcher = await client(kind)
    await watcher.subscribe(f"{topic}/#", 1)
    polite = await client(kind, will=Will(f"{topic}/polite", b"never"))
    await polite.disconnect()
    lost = await client(kind, will=Will(f"{topic}/lost", b"gone", 1, True))
    await lost.drop()
    message = await watcher.receive()
    assert (message.topic, message.payload, message.qos) == (f"{topic}/lost", b"gone", 1)
    late = await client(kind)
    await late.subscribe(f"{topic}/lost", 1)
    assert (await late.receive()).retain
    await late.publish(f"{topic}/lost", b"", 1, True)
    assert (await watcher.receive()).topic == f"{topic}/lost"
    assert watcher.nothing_more()
    await close(watcher, late)


@every_kind
async def test_shared_subscription(client: Opener, topic: str, kind: Kind) -> None:
    publisher = await client(kind)
    members = [await client(kind) for _ in range(3)]
    for member in members:
        assert await member.subscribe(f"$share/group/{topic}", 1) == 1
    for number in range(30):
        await publisher.publish(topic, b"%d" % number, 1)
    assert sorted(await receive_among(members, 30)) == list(range(30))
    await members[0].disconnect()
    for number in range(10):
        await publisher.publish(topic, b"%d" % number, 1)
    assert sorted(await receive_among(members[1:], 10)) == list(range(10))
    await close(publisher, *members[1:])


@every_kind
@pytest.mark.parametrize("qos", [1, 2])
async def test_persistent_session_gets_what_it_missed(client: Opener, topic: str, kind: Kind, qos: int) -> None:
    keep = {"clean": False, "session_expiry": 300}
    device = await client(kind, "device", **keep)
    assert device.session_present in {False, None}
    await device.subscribe(f"{topic}/commands", qos)
    await device.disconnect()
    publisher = await client(kind)
    for number in range(50):
        await publisher.publish(f"{topic}/commands", b"%d" % number, qos)
    device = await client(kind, "device", **keep)
    assert device.session_present in {True, None}
    received = await device.receive_many(50)
    assert [(int(m.payload), m.qos) for m in received] == [(number, qos) for number in range(50)]
    await publisher.publish(f"{topic}/commands", b"live", qos)
    assert (await device.receive()).payload == b"live"
    await device.disconnect()
    device = await client(kind, "device", clean=True)  # ends the session
    assert device.session_present in {False, None}
    await publisher.publish(f"{topic}/commands", b"for nobody", qos)
    await device.subscribe(f"{topic}/end", qos)
    await publisher.publish(f"{topic}/end", b"", qos)
    assert (await device.receive()).topic == f"{topic}/end"
    await close(device, publisher)


@every_kind
async def test_takeover(client: Opener, topic: str, kind: Kind) -> None:
    keep = {"clean": False, "session_expiry": 300}
    first = await client(kind, "same", **keep)
    await first.subscribe(topic, 1)
    second = await client(kind, "same", **keep)
    assert second.session_present in {True, None}
    reason = await first.ended()
    if kind.library == "paho" and kind.version == 5:
        assert reason == 0x8E  # session taken over
    await second.publish(topic, b"mine", 1)
    assert (await second.receive()).payload == b"mine"
    await second.disconnect()
    await close(await client(kind, "same", clean=True))


@pytest.mark.parametrize("kind", QUICK_KINDS, ids=str)
async def test_keep_alive_with_nothing_to_say(client: Opener, topic: str, kind: Kind) -> None:
    one = await client(kind, keep_alive=1)
    await one.subscribe(topic)
    await asyncio.sleep(2.5)  # well beyond 1.5 times the keep alive: only pings can have kept it
    await one.publish(topic, b"still here")
    assert (await one.receive()).payload == b"still here"
    await close(one)


@every_kind_5
async def test_properties_arrive_as_they_were_sent(client: Opener, topic: str, kind: Kind) -> None:
    one = await client(kind)
    await one.subscribe(topic, 2)
    pairs = [("name", "first"), ("other", "süd"), ("name", "second"), ("empty", "")]
    for qos in (0, 1, 2):
        await one.publish(
            topic, b"{}", qos, user_property=pairs, content_type="application/json", message_expiry_interval=100
        )
        properties = (await one.receive()).properties
        assert [tuple(pair) for pair in properties["user_property"]] == pairs
        assert properties["content_type"] == "application/json"
        assert 98 <= properties["message_expiry_interval"] <= 100
    await close(one)


@every_kind_5
async def test_request_and_response(client: Opener, topic: str, kind: Kind) -> None:
    requester, responder = await client(kind), await client(kind)
    await responder.subscribe(f"{topic}/requests", 1)
    await requester.subscribe(f"{topic}/answers", 1)
    correlation = b"\x00\x01\xfe\xff"
    await requester.publish(
        f"{topic}/requests", b"question", 1, response_topic=f"{topic}/answers", correlation_data=correlation
    )
    request = await responder.receive()
    await responder.publish(
        request.properties["response_topic"], b"answer", 1, correlation_data=request.properties["correlation_data"]
    )
    response = await requester.receive()
    assert (response.payload, response.properties["correlation_data"]) == (b"answer", correlation)
    await close(requester, responder)


@every_kind_5
async def test_options_of_a_subscription(client: Opener, topic: str, kind: Kind) -> None:
    one, other = await client(kind), await client(kind)
    await other.publish(f"{topic}/a", b"retained", 1, True)
    await one.subscribe(f"{topic}/#", 1, no_local=True, retain_as_published=True, retain_handling=2)
    await one.publish(f"{topic}/b", b"own", 1)
    await other.publish(f"{topic}/a", b"live", 1, True)
    message = await one.receive()
    assert (message.payload, message.retain) == (b"live", True)
    await other.publish(f"{topic}/a", b"", 1, True)
    assert (await one.receive()).payload == b""
    assert one.nothing_more()
    await close(one, other)
