"""CONSISTENT_HASH_BOUNDED: no member is above the bound, in whatever order the input comes."""

from collections import Counter
from collections.abc import Mapping
from math import ceil
from random import Random

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.planning import consistent_hash_bounded as strategies
from rebalance_core.planning.consistent_hash_bounded import ConsistentHashBounded, capacity
from rebalance_core.planning.known_strategies import planning_strategy
from rebalance_core.strategies import allocate_group, parse_strategy

EXAMPLES = 400
EPSILONS = (0.0, 0.05, 0.1, 0.25, 1.0, 3.0)


def random_group(rng: Random) -> tuple[list[MessageQueue], list[str]]:
    brokers, size = rng.randint(1, 4), rng.choice((1, 2, 8, 30))
    queues = [MessageQueue("orders", f"broker-{b}", i) for b in range(brokers) for i in range(size)]
    if rng.random() < 0.5:
        queues += [MessageQueue("pay", "broker-0", i) for i in range(rng.randint(1, 9))]
    members = [
        f"10.0.{i}.{rng.randrange(256)}@{rng.randrange(30_000)}#{rng.randrange(10**12)}"
        for i in range(rng.randint(1, 25))
    ]
    return queues, members


def moves(before: Mapping[MessageQueue, object], after: Mapping[MessageQueue, object]) -> int:
    return sum(before.get(queue) != owner for queue, owner in after.items())


def test_no_member_is_above_the_bound_in_any_topic(seed: int) -> None:
    rng, full = Random(seed), 0
    for _ in range(EXAMPLES):
        queues, members = random_group(rng)
        strategy = ConsistentHashBounded(rng.choice(EPSILONS), rng.choice((1, 3, 10)))
        owners = strategy.assign_one({}, queues, members)
        assert list(owners) == sort_queues(queues)
        for topic in {queue.topic for queue in queues}:
            loads = Counter(owner for queue, owner in owners.items() if queue.topic == topic)
            most = capacity(loads.total(), len(members), strategy.epsilon)
            assert loads.keys() <= set(members)
            assert max(loads.values()) <= most, (seed, strategy, queues, members)
            full += max(loads.values()) == most
    assert full > EXAMPLES / 4  # the bound is met, so the test says something


def test_the_result_depends_on_the_sets_alone(seed: int) -> None:
    rng = Random(seed)
    for _ in range(EXAMPLES // 4):
        queues, members = random_group(rng)
        strategy = ConsistentHashBounded(rng.choice(EPSILONS))
        expected = strategy.assign_one({}, queues, members)
        rng.shuffle(queues)
        rng.shuffle(members)
        before = {queue: rng.choice(members) for queue in queues}
        again = strategy.assign_one(before, queues + queues[:2], members + members[:1])
        assert again == expected


def test_without_a_bound_it_is_consistent_hash_of_rocketmq(seed: int) -> None:
    rng = Random(seed)
    for _ in range(EXAMPLES // 4):
        queues, members = random_group(rng)
        queues = [queue for queue in queues if queue.topic == "orders"]
        nodes = rng.choice((1, 10))
        loose = ConsistentHashBounded(1e6, nodes).assign_one({}, queues, members)
        ring = parse_strategy(f"CONSISTENT_HASH(virtual_nodes={nodes})")
        assert {q: (owner,) for q, owner in loose.items()} == allocate_group(ring, queues, members)


def test_a_join_or_a_leave_moves_few(seed: int) -> None:
    rng = Random(seed)
    moved: Counter[str] = Counter()
    for _ in range(EXAMPLES // 4):
        queues, members = random_group(rng)
        strategies = {e: ConsistentHashBounded(e) for e in (0.0, 0.25, 1.0)}
        small, large = (members[:-1], members) if len(members) > 1 else (members, [*members, "z"])
        for epsilon, strategy in strategies.items():
            one, two = (strategy.assign_one({}, queues, some) for some in (small, large))
            moved[f"{epsilon} joins"] += moves(one, two)
            moved[f"{epsilon} leaves"] += moves(two, one)
        average = planning_strategy("AVG")
        of_small, of_large = (average.assign({}, queues, some) for some in (small, large))
        moved["AVG"] += moves(of_small, of_large)
    for way in ("joins", "leaves"):
        # the looser the bound, the fewer; about half of what AVG moves
        assert moved[f"1.0 {way}"] < moved[f"0.25 {way}"] < moved[f"0.0 {way}"]
        assert moved[f"0.25 {way}"] < 0.75 * moved["AVG"]


def test_capacity_is_exact_in_decimals() -> None:
    assert ceil((1 + 0.1) * 50 / 11) == 6  # floats say 5.000000000000001
    assert capacity(50, 11, 0.1) == 5
    assert capacity(0, 3, 0.25) == 0
    assert capacity(1, 3, 0.0) == 1


def test_a_member_that_lost_its_points_to_collisions_still_takes_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(strategies, "build_ring", lambda *_: ((1, 2**31), ("a", "b")))
    queues = [MessageQueue("orders", "x", i) for i in range(6)]
    owners = ConsistentHashBounded(0.0).assign_one({}, queues, ["a", "b", "c"])
    assert sorted(Counter(owners.values()).items()) == [("a", 2), ("b", 2), ("c", 2)]


@pytest.mark.parametrize("epsilon", [-0.1, float("nan"), float("inf")])
def test_epsilon_must_be_a_number_from_0_up(epsilon: float) -> None:
    with pytest.raises(UsageError, match="epsilon"):
        ConsistentHashBounded(epsilon)


def test_a_ring_without_nodes_is_refused() -> None:
    with pytest.raises(UsageError, match="virtual_nodes 0"):
        ConsistentHashBounded(virtual_nodes=0)


def test_queues_need_a_member() -> None:
    assert ConsistentHashBounded().assign_one({}, [], []) == {}
    with pytest.raises(UsageError, match="no member"):
        ConsistentHashBounded().assign_one({}, [MessageQueue("orders", "x", 0)], [])
