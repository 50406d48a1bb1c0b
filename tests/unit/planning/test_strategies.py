"""Strategies of plans by their text."""

import pickle

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.known_strategies import PLANNING_NAMES, planning_strategy
from rebalance_core.strategies import allocate_group, parse_strategy

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
def test_without_members_everything_has_no_owner(text: str) -> None:
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
