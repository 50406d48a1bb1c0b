import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue, sort_client_ids, sort_queues
from rebalance_core.strategies import (
    AllocationStrategy,
    allocate_group,
    make_strategy,
    parse_strategy,
)
from rebalance_core.strategies.machine_room import MachineRoom
from rebalance_core.strategies.pop import Pop
from rebalance_core.strategies.spi import is_java_blank
from tests.unit.strategies.groups import EIGHT, MEMBERS, queues

ALL = [
    make_strategy("AVG"),
    make_strategy("AVG_BY_CIRCLE"),
    make_strategy("CONSISTENT_HASH"),
    make_strategy("CONSISTENT_HASH", {"virtual_nodes": 0}),
    make_strategy("MACHINE_ROOM", {"consumer_idcs": ["r"]}),
    make_strategy(
        "MACHINE_ROOM_NEARBY-AVG", {"client_rooms": {"": "r"}, "broker_rooms": {"": "s"}}
    ),
    make_strategy("CONFIG", {"config": ["T|a|0"]}),
    *map(
        parse_strategy,
        [
            "MACHINE_ROOM",
            "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE(client_rooms=a:r|b:s, broker_rooms=a:r|b:t)",
            "MACHINE_ROOM_NEARBY-CONFIG(client_rooms=:r, broker_rooms=:s)",
            "GO_CONSISTENT_HASH(virtual_nodes=3)",
            "GO_CONSISTENT_HASH(virtual_nodes=0)",
            "GO_MACHINE_ROOM(consumer_idcs=r|s|r)",
        ],
    ),
    MachineRoom(("r",), blank_is_empty=True),
    Pop(make_strategy("AVG"), 1),
    Pop(make_strategy("AVG_BY_CIRCLE"), 2),
    Pop(make_strategy("AVG")),
]
CLIENTS = st.lists(st.text("ab 😀\uff5e", max_size=2), max_size=6)
QUEUES = st.lists(
    st.builds(MessageQueue, st.just("T"), st.sampled_from(["a", "r@b", "c"]), st.integers(0, 9)),
    max_size=12,
    unique=True,
)


def one_by_one(
    strategy: AllocationStrategy, sorted_queues: list[MessageQueue], client_ids: list[str]
) -> dict[str, list[MessageQueue]] | str:
    try:
        return AllocationStrategy.allocate_all(strategy, sorted_queues, client_ids)
    except AllocationError as error:
        return str(error)


@pytest.mark.parametrize("strategy", ALL, ids=str)
@given(QUEUES, CLIENTS)
def test_the_whole_group_is_the_sum_of_its_members(
    strategy: AllocationStrategy, some: list[MessageQueue], clients: list[str]
) -> None:
    sorted_queues, client_ids = sort_queues(some), sort_client_ids(clients)
    try:
        whole: dict[str, list[MessageQueue]] | str = strategy.allocate_all(
            sorted_queues, client_ids
        )
    except AllocationError as error:
        whole = str(error)
    assert whole == one_by_one(strategy, sorted_queues, client_ids)


@pytest.mark.parametrize("strategy", [each for each in ALL if each.throws_for_all], ids=str)
@given(QUEUES.filter(bool), CLIENTS)
def test_what_throws_for_a_member_throws_for_all(
    strategy: AllocationStrategy, some: list[MessageQueue], clients: list[str]
) -> None:
    sorted_queues = sort_queues(some)
    client_ids = sort_client_ids(one for one in clients if not is_java_blank(one))
    thrown = set()
    for client_id in client_ids:
        try:
            strategy.allocate(client_id, sorted_queues, client_ids)
            thrown.add("")
        except AllocationError as error:
            thrown.add(error.java_class)
    assert len(thrown) <= 1


def test_both_are_sorted_and_queues_come_in_order() -> None:
    owners = allocate_group(make_strategy("AVG"), reversed(EIGHT), reversed(MEMBERS))
    assert list(owners) == EIGHT
    assert [MEMBERS.index(o) for (o,) in owners.values()] == [0, 0, 0, 1, 1, 1, 2, 2]


def test_no_owner_is_an_empty_tuple() -> None:
    x = "172.17.0.1@1"
    owners = allocate_group(make_strategy("AVG"), EIGHT, [x, x])
    assert list(owners.values()) == [(x,)] * 4 + [()] * 4
    assert allocate_group(make_strategy("AVG"), EIGHT, []) == dict.fromkeys(EIGHT, ())


def test_queues_only_config_knows_come_last_and_belong_to_everybody() -> None:
    config = make_strategy("CONFIG", {"config": ["Z|z|0", "T|broker-a|1", "A|a|0", "Z|z|0"]})
    owners = allocate_group(config, queues("a0 a1"), ["d", "c"])
    assert list(owners.items()) == [
        (MessageQueue("T", "broker-a", 0), ()),
        (MessageQueue("T", "broker-a", 1), ("c", "d")),
        (MessageQueue("A", "a", 0), ("c", "d")),
        (MessageQueue("Z", "z", 0), ("c", "d")),
    ]


def test_an_upstream_exception_is_raised() -> None:
    with pytest.raises(AllocationError, match="mqAll is null or mqAll empty"):
        allocate_group(make_strategy("AVG"), [], MEMBERS)


@pytest.mark.parametrize("strategy", ALL, ids=str)
def test_strategies_are_frozen_hashable_and_travel(strategy: AllocationStrategy) -> None:
    assert pickle.loads(pickle.dumps(strategy)) == strategy
    assert hash(pickle.loads(pickle.dumps(strategy))) == hash(strategy)
    with pytest.raises(AttributeError):
        strategy.anything = 1  # type: ignore[attr-defined]
