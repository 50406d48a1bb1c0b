"""Which queues can be read after which event, and the minimum of moves."""

from itertools import product

import numpy as np
import pytest

from rebalance_core.model.events import Event
from rebalance_core.protocol.minimum_moves import minimum_moves
from rebalance_core.protocol.routes import Routes

# Which queues can be read after which broker and topic events.


def config(queues: int | None, broker: str = "a", perm: int | None = None) -> Event:
    return Event(
        0, 0, "TOPIC_CONFIG", topic="T", broker_name=broker, read_queue_nums=queues, perm=perm
    )


def broker(event_type: str, name: str = "a") -> Event:
    return Event(0, 0, event_type, broker_name=name)


def deleted(name: str | None) -> Event:
    return Event(0, 0, "TOPIC_DELETED", topic="T", broker_name=name)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], ""),
        ([config(2)], "a0 a1"),
        ([config(1, "b"), config(2)], "a0 a1 b0"),  # broker order, not order of creation
        ([config(2), config(1)], "a0"),  # scaled in
        ([config(0)], ""),
        ([config(None)], ""),
        ([config(1, perm=4)], "a0"),
        ([config(1, perm=6)], "a0"),
        ([config(1, perm=2)], ""),  # write only
        ([config(1, perm=0)], ""),
        ([config(1, perm=2), config(1)], "a0"),  # null is 6 again
        ([config(1), config(1, "b"), broker("BROKER_DOWN")], "b0"),
        ([config(1), broker("BROKER_DOWN"), broker("BROKER_UP")], "a0"),
        ([broker("BROKER_DOWN"), config(1)], ""),  # a topic event raises no broker
        ([broker("BROKER_UP", "b"), config(1)], "a0"),  # never heard of: up
        ([config(1), config(1, "b"), deleted("a")], "b0"),
        ([config(1), config(1, "b"), deleted(None)], ""),
        ([deleted("a"), deleted(None)], ""),
        ([config(1), deleted(None), config(2)], "a0 a1"),
        ([config(1), Event(0, 0, "CONSUMER_JOIN", "x")], "a0"),
    ],
)
def test_readable_queues(events: list[Event], expected: str) -> None:
    routes = Routes()
    for event in events:
        routes.readable_queues("T")  # an answer holds until the next event
        routes.apply(event)
    found = " ".join(f"{q.broker_name}{q.queue_id}" for q in routes.readable_queues("T"))
    assert found == expected


def test_queue_ids_are_in_numeric_order() -> None:
    routes = Routes()
    routes.apply(config(12))
    assert [q.queue_id for q in routes.readable_queues("T")] == list(range(12))


def test_brokers_of_a_topic_count_down_or_unreadable() -> None:
    routes = Routes()
    for event in (config(0), config(1, "b", perm=0), broker("BROKER_DOWN")):
        routes.apply(event)
    assert routes.brokers_of("T") == {"a", "b"}
    assert routes.brokers_of("U") == set()


# The minimum of moves against every balanced allocation there is.


def brute_force(before: tuple[int | None, ...], members: int) -> int:
    """Fewest queues with a new holder over all allocations whose sizes differ by at most one."""
    fewest = len(before)
    for after in product(range(members), repeat=len(before)):
        sizes = [after.count(member) for member in range(members)]
        if max(sizes) - min(sizes) <= 1:
            fewest = min(fewest, sum(a != b for a, b in zip(after, before, strict=True)))
    return fewest


@pytest.mark.parametrize("members", [1, 2, 3])
@pytest.mark.parametrize("queues", [0, 1, 2, 4, 5])
def test_no_balanced_allocation_moves_less(queues: int, members: int) -> None:
    # None: a queue that is new or was the departed member's.
    for before in product([None, *range(members)], repeat=queues):
        kept = [before.count(member) for member in range(members)]
        assert minimum_moves(queues, members, kept) == brute_force(before, members), before


def test_members_that_held_nothing_may_be_left_out() -> None:
    assert minimum_moves(8, 3, [4, 4]) == minimum_moves(8, 3, [4, 0, 4]) == 2


def test_shared_queues_never_make_it_negative() -> None:
    assert minimum_moves(2, 2, [2, 2]) == 0
    assert minimum_moves(3, 2, [3, 3]) == 0


# The minimum of moves against every balanced allocation, for every allocation before it.

UNOWNED, DEPARTED = -1, -2


def balanced_allocations(queues: int, members: int) -> list[tuple[int, ...]]:
    """All of them: the owner of each queue."""
    fewest, extra = divmod(queues, members)
    sizes = [fewest + 1] * extra + [fewest] * (members - extra)
    return [
        owners
        for owners in product(range(members), repeat=queues)
        if sorted(map(owners.count, range(members)), reverse=True) == sizes
    ]


@pytest.mark.parametrize("members", [1, 2, 3, 4])
@pytest.mark.parametrize("queues", range(7))
def test_the_formula_is_the_best_of_all_balanced_allocations(queues: int, members: int) -> None:
    holders = (UNOWNED, DEPARTED, *range(members))
    before = np.array(list(product(holders, repeat=queues)), np.int8)
    before = before.reshape(len(holders) ** queues, queues)
    most_kept = np.zeros(len(before), np.int64)
    for owners in balanced_allocations(queues, members):
        kept = (before == np.array(owners, np.int8)).sum(axis=1)
        np.maximum(most_kept, kept, out=most_kept)
    held = np.stack([(before == member).sum(axis=1) for member in range(members)], axis=1)
    for kept_counts, best in zip(held.tolist(), most_kept.tolist(), strict=True):
        assert minimum_moves(queues, members, kept_counts) == queues - best, kept_counts


def test_every_balanced_allocation_is_looked_at() -> None:
    # 6 queues on 4 members: C(4, 2) ways to choose who gets two, 6! / (2! 2!) to assign them
    assert len(balanced_allocations(6, 4)) == 6 * 180
