import pytest

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import make_strategy, parse_strategy
from rebalance_core.strategies.machine_room import RoomResolver


def queue(broker: str, queue_id: int = 0) -> MessageQueue:
    return MessageQueue("T", broker, queue_id)


@pytest.mark.parametrize(
    ("brokers", "members", "message"),
    [
        (["r-a", "b"], ["c"], "Machine room is null for mq " + str(queue("b"))),
        (["-b"], ["r-c"], "Machine room is null for mq " + str(queue("-b"))),
        (["r-a"], ["c", "r-c"], "Machine room is null for consumer id c"),
    ],
)
def test_one_without_a_room_fails_the_group(
    brokers: list[str], members: list[str], message: str
) -> None:
    strategy = make_strategy("MACHINE_ROOM_NEARBY-AVG")
    for client_id in members:
        with pytest.raises(AllocationError) as raised:
            strategy.allocate(client_id, [queue(b) for b in brokers], members)
        assert raised.value.java_message == message


def test_longest_prefix_then_separator_then_no_room() -> None:
    rooms = RoomResolver(client_rooms=(("10.", "a"), ("10.1.", "b")), broker_rooms=(("x-", "c"),))
    assert [rooms.client_room(c) for c in ("10.2.3", "10.1.3", "r-1", "none", "-1")] == [
        *("a", "b", "r", None, "")
    ]
    assert rooms.broker_room(queue("x-1")) == "c"
    assert rooms.broker_room(queue("10.1")) is None


def test_rooms_without_members_come_in_java_order() -> None:
    # U+1F600 sorts before U+FF5E in UTF-16 only.
    brokers = ["own-1", "\uff5e-1", "😀-1"]
    strategy = make_strategy("MACHINE_ROOM_NEARBY-AVG")
    share = strategy.allocate("own-c", [queue(b) for b in brokers], ["own-c"])
    assert [q.broker_name for q in share] == ["own-1", "😀-1", "\uff5e-1"]


def test_an_inner_config_adds_its_list_for_each_room() -> None:
    strategy = parse_strategy("MACHINE_ROOM_NEARBY-CONFIG(queues=T/r-a/1)")
    rooms = [queue("r-a"), queue("s-a")]
    assert strategy.allocate("r-c", rooms, ["r-c"]) == [queue("r-a", 1)] * 2


def test_an_inner_config_without_list_fails_as_addall_of_null() -> None:
    with pytest.raises(AllocationError) as raised:
        make_strategy("MACHINE_ROOM_NEARBY-CONFIG").allocate("r-c", [queue("r-a")], ["r-c"])
    assert raised.value.java_class == "NullPointerException"


def test_nesting_changes_nothing() -> None:
    brokers, members = [queue(b, i) for b in ("r-a", "s-a") for i in range(4)], ["r-1", "r-2"]
    once, twice = (
        make_strategy(f"{prefix}-AVG", {"room_separator": "-"})
        for prefix in ("MACHINE_ROOM_NEARBY", "MACHINE_ROOM_NEARBY-MACHINE_ROOM_NEARBY")
    )
    assert once.allocate_all(brokers, members) == twice.allocate_all(brokers, members)
