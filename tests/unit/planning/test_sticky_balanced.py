"""STICKY_BALANCED: always balanced, never a move too many."""

from collections import Counter
from itertools import product
from random import Random

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.planning.sticky_balanced import StickyBalanced
from rebalance_core.protocol.minimum_moves import minimum_moves

HISTORIES = 10_000
STEPS = 5
TOPICS = ("orders", "pay")

Owners = dict[MessageQueue, str]


def check(
    before: dict[MessageQueue, str | None], queues: set[MessageQueue], members: set[str]
) -> Owners:
    """Balanced per topic, and exactly the proven minimum of moves; returns the allocation."""
    owners = StickyBalanced().assign_one(before, queues, members)
    assert list(owners) == sort_queues(queues)
    for topic in TOPICS:
        of_topic = [queue for queue in queues if queue.topic == topic]
        sizes = Counter(owners[queue] for queue in of_topic)
        counts = [sizes[member] for member in members]
        assert max(counts) - min(counts) <= 1
        kept = Counter(before.get(queue) for queue in of_topic)
        least = minimum_moves(len(of_topic), len(members), [kept[m] for m in members])
        assert sum(owners[queue] != before.get(queue) for queue in of_topic) == least
    return owners


def changed(rng: Random, queues: set[MessageQueue], members: set[str], joined: int) -> int:
    """One step of a history, in place; returns how many ever joined."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        match rng.randrange(6):
            case 0 | 1:
                joined += 1
                members.add(f"10.0.0.{rng.randrange(256)}@{joined}")
            case 2 | 3 if len(members) > 1:
                members.remove(rng.choice(sorted(members)))
            case 4:
                topic, broker = rng.choice(TOPICS), rng.choice("abc")
                queues |= {MessageQueue(topic, broker, i) for i in range(rng.randrange(9))}
            case 5:
                gone = rng.choice("abc")
                queues -= {q for q in queues if q.broker_name == gone and rng.random() < 0.7}
    return joined


def test_random_histories_are_balanced_and_move_the_minimum(seed: int) -> None:
    rng = Random(seed)
    moved = 0
    for number in range(HISTORIES):
        queues: set[MessageQueue] = {
            MessageQueue("orders", "a", i) for i in range(rng.randrange(20))
        }
        members = {f"10.0.0.{rng.randrange(256)}@first"}
        # it may begin with any allocation: skewed, of no member, of members that are gone
        held: dict[MessageQueue, str | None] = {
            q: rng.choice((None, "gone", *members)) for q in queues
        }
        joined = 0
        for step in range(STEPS):
            joined = changed(rng, queues, members, joined)
            try:
                owners = check(held, queues, members)
            except AssertionError as error:
                raise AssertionError(
                    f"seed {seed}, history {number}, step {step}: {held}, {queues}, {members}"
                ) from error
            moved += sum(owners[q] != held.get(q) for q in queues)
            held = dict(owners)
    assert moved > HISTORIES * STEPS  # the histories are about something


def test_every_small_allocation_before() -> None:
    members = ("a", "b", "c")
    for count in range(6):
        queues = [MessageQueue("orders", "x", i) for i in range(count)]
        for before in product((None, "gone", *members), repeat=count):
            check(dict(zip(queues, before, strict=True)), set(queues), set(members))


def test_the_order_of_the_arguments_does_not_count(seed: int) -> None:
    rng = Random(seed)
    queues = [MessageQueue(t, b, i) for t in TOPICS for b in "ab" for i in range(12)]
    members = [f"10.0.0.{i}@1" for i in range(9)]
    before = {queue: rng.choice((*members, "gone")) for queue in queues}
    expected = StickyBalanced().assign_one(before, queues, members)
    for _ in range(20):
        rng.shuffle(queues)
        rng.shuffle(members)
        shuffled = {queue: before[queue] for queue in queues}
        assert (
            StickyBalanced().assign_one(shuffled, queues + queues[:3], members + members[:2])
            == expected
        )


def test_the_same_group_asked_again_moves_nothing() -> None:
    queues = [MessageQueue("orders", "a", i) for i in range(10)]
    once = StickyBalanced().assign_one({}, queues, "abc")
    assert StickyBalanced().assign_one(once, queues, "abc") == once


def test_ties_follow_the_orders_of_rocketmq() -> None:
    # Java: 10.0.0.10@ before 10.0.0.1@; numbers: 2 before 10
    queues = [MessageQueue("orders", "a", i) for i in (10, 2, 3)]
    owners = StickyBalanced().assign_one({}, queues, ["10.0.0.1@x", "10.0.0.10@x"])
    assert [(q.queue_id, owner) for q, owner in owners.items()] == [
        (2, "10.0.0.10@x"),
        (3, "10.0.0.10@x"),
        (10, "10.0.0.1@x"),
    ]


def test_sticky_balanced_queues_need_a_member() -> None:
    assert StickyBalanced().assign_one({}, [], []) == {}
    with pytest.raises(UsageError, match="no member"):
        StickyBalanced().assign_one({}, [MessageQueue("orders", "a", 0)], [])
