"""Hypothetical strategies, and strategies of plans by their text."""

import pickle
from collections import Counter
from collections.abc import Mapping
from itertools import product
from math import ceil
from random import Random

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.planning import consistent_hash_bounded as strategies
from rebalance_core.planning.consistent_hash_bounded import ConsistentHashBounded, capacity
from rebalance_core.planning.known_strategies import PLANNING_NAMES, planning_strategy
from rebalance_core.planning.sticky_balanced import StickyBalanced
from rebalance_core.protocol.minimum_moves import minimum_moves
from rebalance_core.strategies import allocate_group, parse_strategy

# CONSISTENT_HASH_BOUNDED: nobody above the bound, whatever order things are said in.

EXAMPLES = 400
EPSILONS = (0.0, 0.05, 0.1, 0.25, 1.0, 3.0)


def random_group(rng: Random) -> tuple[list[MessageQueue], list[str]]:
    brokers, size = rng.randint(1, 4), rng.choice((1, 2, 8, 30))
    queues = [MessageQueue("orders", f"broker-{b}", i) for b in range(brokers) for i in range(size)]
    if rng.random() < 0.5:
        queues += [MessageQueue("pay", "broker-0", i) for i in range(rng.randint(1, 9))]
    members = [f"10.0.{i}.{rng.randrange(256)}@{rng.randrange(30_000)}#{rng.randrange(10**12)}"
               for i in range(rng.randint(1, 25))]  # fmt: skip
    return queues, members


def moves(before: Mapping[MessageQueue, object], after: Mapping[MessageQueue, object]) -> int:
    return sum(before.get(queue) != owner for queue, owner in after.items())


def test_nobody_is_above_the_bound_in_any_topic(seed: int) -> None:
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


# Strategies of plans by their text.

QUEUES = [MessageQueue(t, f"room{i}@b", q) for t in ("T", "S") for i in (1, 2) for q in range(4)]
MEMBERS = ["room2-c", "room1-a", "room1-b"]

OF_ROCKETMQ = (
    "AVG",
    "AVG_BY_CIRCLE",
    "CONSISTENT_HASH(virtual_nodes=5)",
    "MACHINE_ROOM(consumer_idcs=room1)",
    "MACHINE_ROOM_NEARBY-AVG(client_rooms=room1:1|room2:2, broker_rooms=room1:1|room2:2)",
    "CONFIG(queues=T/room1@b/0|S/room1@b/9)",
)
OWN = ("STICKY_BALANCED", "CONSISTENT_HASH_BOUNDED(epsilon=0.5, virtual_nodes=3)")


@pytest.mark.parametrize("text", OF_ROCKETMQ)
def test_rocketmqs_strategies_divide_each_topic_as_a_group_does(text: str) -> None:
    strategy = planning_strategy(text)
    assert strategy.of_rocketmq
    owners = strategy.assign({}, reversed(QUEUES), MEMBERS)
    assert [queue.topic for queue in owners] == sorted(queue.topic for queue in owners)
    for topic in ("S", "T"):
        of_topic = [queue for queue in QUEUES if queue.topic == topic]
        group = allocate_group(parse_strategy(text), of_topic, MEMBERS)
        expected = {queue: clients for queue, clients in group.items() if queue.topic == topic}
        assert {q: c for q, c in owners.items() if q.topic == topic} == expected


@pytest.mark.parametrize("text", OWN)
def test_own_strategies_are_labelled_and_give_each_queue_one_owner(text: str) -> None:
    strategy = planning_strategy(text)
    assert not strategy.of_rocketmq
    owners = strategy.assign({}, QUEUES, [*MEMBERS, MEMBERS[0]])
    assert set(owners) == set(QUEUES)
    assert {len(clients) for clients in owners.values()} == {1}


@pytest.mark.parametrize("text", OWN)
def test_clients_asked_one_by_one_get_the_parts_of_the_whole(text: str) -> None:
    strategy = planning_strategy(text)
    queues = [queue for queue in QUEUES if queue.topic == "T"]
    before = dict.fromkeys(queues, "room1-a")
    asked = strategy.as_allocation(before)
    assert asked.name == strategy.name
    group = allocate_group(asked, queues, MEMBERS)
    assert group == strategy.assign(before, queues, MEMBERS)
    twice = [*MEMBERS, MEMBERS[0]]  # two processes have one id: clients list it twice
    assert allocate_group(strategy.as_allocation(before), queues, twice) == group


@pytest.mark.parametrize("text", [*OF_ROCKETMQ, *OWN])
def test_texts_round_trip_and_values_travel(text: str) -> None:
    strategy = planning_strategy(text)
    assert str(strategy) == text
    assert planning_strategy(str(strategy)) == strategy == pickle.loads(pickle.dumps(strategy))
    assert hash(strategy) == hash(planning_strategy(text))


@pytest.mark.parametrize("text", ["AVG", *OWN])
def test_without_members_everything_is_nobodys(text: str) -> None:
    assert set(planning_strategy(text).assign({}, QUEUES, []).values()) == {()}
    assert planning_strategy(text).assign({}, [], MEMBERS) == {}


def test_defaults_of_the_bounded_hash() -> None:
    assert str(planning_strategy("CONSISTENT_HASH_BOUNDED")) == (
        "CONSISTENT_HASH_BOUNDED(epsilon=0.25, virtual_nodes=10)"
    )


def test_an_unknown_name_lists_all_and_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        planning_strategy("STICKY_BALANCE")
    message = str(caught.value)
    assert all(name in message for name in PLANNING_NAMES)
    assert message.endswith("did you mean STICKY_BALANCED?")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("POP", "not a strategy of a client"),
        ("AVG(x=1)", "unknown parameter of AVG"),
        ("STICKY_BALANCED(x=1)", "unknown parameter of STICKY_BALANCED"),
        ("CONSISTENT_HASH_BOUNDED(epsilom=1)", "did you mean epsilon"),
        ("CONSISTENT_HASH_BOUNDED(epsilon=much)", "epsilon=much: expected a number"),
        ("CONSISTENT_HASH_BOUNDED(epsilon=-1)", "epsilon -1.0"),
        ("CONSISTENT_HASH_BOUNDED(virtual_nodes=0)", "virtual_nodes 0"),
        ("CONSISTENT_HASH_BOUNDED(virtual_nodes=1.5)", "not an integer"),
        ("CONSISTENT_HASH_BOUNDED(epsilon=1", r"the closing '\)' is missing"),
        ("CONSISTENT_HASH_BOUNDED(epsilon=1, epsilon=2)", "used twice"),
        ("MACHINE_ROOM_NEARBY", "needs a client strategy inside"),
        ("", "unknown strategy"),
    ],
)
def test_wrong_texts_are_named(text: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        planning_strategy(text)


# STICKY_BALANCED: always balanced, never a move too many.

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
        # it may begin with any allocation: skewed, of nobody, of members that are gone
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
