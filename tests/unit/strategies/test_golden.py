"""Answers of the released classes, small enough to read (rocketmq.md §2)."""

import pytest

from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import parse_strategy
from tests.unit.strategies.groups import EIGHT, MEMBERS, queues, short

X, Y = "172.17.0.1@1", "172.17.0.1@2"


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("AVG", ["a0 a1 a2", "a3 b0 b1", "b2 b3"]),
        ("AVG_BY_CIRCLE", ["a0 a3 b2", "a1 b0 b3", "a2 b1"]),
        ("CONSISTENT_HASH", ["a0 a3 b1 b2", "a2", "a1 b0 b3"]),
        ("CONSISTENT_HASH(virtual_nodes=1)", ["a1 b1", "a3", "a0 a2 b0 b2 b3"]),
        ("CONSISTENT_HASH(virtual_nodes=0)", ["", "", ""]),
    ],
)
def test_three_members_share_eight_queues(text: str, shares: list[str]) -> None:
    strategy = parse_strategy(text)
    assert [short(strategy.allocate(c, EIGHT, MEMBERS)) for c in MEMBERS] == shares


@pytest.mark.parametrize(
    ("text", "alone", "of_x", "of_y"),
    [
        ("AVG", "a0 a1 a2 a3", "a0 a1 a2", "b2 b3"),
        ("AVG_BY_CIRCLE", "a0 a2 b0 b2", "a0 a3 b2", "a2 b1"),
        ("CONSISTENT_HASH", "a0 a1 a2 a3 b0 b1 b2 b3", "a0 a3 b0 b2", "a1 a2 b1 b3"),
    ],
)
def test_duplicated_ids_share_the_first_place(text: str, alone: str, of_x: str, of_y: str) -> None:
    strategy = parse_strategy(text)
    assert short(strategy.allocate(X, EIGHT, [X, X])) == alone
    assert short(strategy.allocate(X, EIGHT, [X, X, Y])) == of_x
    assert short(strategy.allocate(Y, EIGHT, [X, X, Y])) == of_y


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("AVG", ["a0", "a1", ""]),
        ("AVG_BY_CIRCLE", ["a0", "a1", ""]),
        ("CONSISTENT_HASH", ["a0", "", "a1"]),
    ],
)
def test_fewer_queues_than_members(text: str, shares: list[str]) -> None:
    strategy = parse_strategy(text)
    assert [short(strategy.allocate(c, queues("a0 a1"), MEMBERS)) for c in MEMBERS] == shares


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("MACHINE_ROOM(consumer_idcs=room1)", [["room1@broker-a/0"], ["room1@broker-a/1"], []]),
        ("MACHINE_ROOM(consumer_idcs=zzz)", [[], [], []]),
    ],
)
def test_machine_room_divides_the_configured_rooms(text: str, shares: list[list[str]]) -> None:
    brokers = ["room1@", "room1@broker-a", "room1@x@broker-c", "room2@broker-b"]
    mixed = [MessageQueue("T", "broker-d", i) for i in (0, 1)]
    mixed += [MessageQueue("T", broker, i) for broker in brokers for i in (0, 1)]
    strategy = parse_strategy(text)
    answers = [strategy.allocate(c, mixed, MEMBERS) for c in MEMBERS]
    assert [[f"{q.broker_name}/{q.queue_id}" for q in share] for share in answers] == shares


@pytest.mark.parametrize(
    ("brokers", "members", "shares"),
    [
        (
            {"R1-a": 4, "R2-a": 4, "R3-a": 4},
            ["R1-c1", "R1-c2", "R2-c1", "R2-c2", "R2-c3"],
            ["R1:0 R1:1 R3:0", "R1:2 R1:3 R3:1", "R2:0 R2:1 R3:2", "R2:2 R3:3", "R2:3"],
        ),
        (
            {"R1-a": 3, "R2-a": 3},
            ["R3-c1", "R3-c2", "R3-c3", "R3-c4"],
            ["R1:0 R2:0", "R1:1 R2:1", "R1:2 R2:2", ""],
        ),
    ],
)
def test_nearby_serves_the_own_room_and_rooms_without_members(
    brokers: dict[str, int], members: list[str], shares: list[str]
) -> None:
    all_queues = [MessageQueue("T", b, i) for b, count in brokers.items() for i in range(count)]
    strategy = parse_strategy("MACHINE_ROOM_NEARBY-AVG")
    answers = [strategy.allocate(c, all_queues, members) for c in members]
    assert [" ".join(f"{q.broker_name[:2]}:{q.queue_id}" for q in a) for a in answers] == shares
