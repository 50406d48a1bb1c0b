import pytest

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import make_strategy
from rebalance_core.strategies.machine_room import java_split
from tests.unit.strategies.groups import EIGHT, MEMBERS


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("room1@", ["room1"]),
        ("@b", ["", "b"]),
        ("a@b@", ["a", "b"]),
        ("@", []),
        ("@@", []),
        ("a@b@c", ["a", "b", "c"]),
        ("plain", ["plain"]),
        ("", [""]),
    ],
)
def test_split_as_java(text: str, parts: list[str]) -> None:
    assert java_split(text, "@") == parts


def test_unset_rooms_fail_only_if_a_broker_has_a_room() -> None:
    unset = make_strategy("MACHINE_ROOM")
    assert unset.allocate(MEMBERS[0], EIGHT, MEMBERS) == []
    with pytest.raises(AllocationError) as raised:
        unset.allocate(MEMBERS[0], [*EIGHT, MessageQueue("T", "r@b", 0)], MEMBERS)
    assert (raised.value.java_class, raised.value.java_message) == ("NullPointerException", None)


def test_a_blank_client_id_is_empty_up_to_4_9_3() -> None:
    old, new = (make_strategy("MACHINE_ROOM", version=v) for v in ("4.9.3", "4.9.4"))
    assert new.allocate(" ", EIGHT, [" "]) == []
    with pytest.raises(AllocationError, match="currentCID is empty"):
        old.allocate(" ", EIGHT, [" "])


def test_the_empty_room_can_be_configured() -> None:
    queue = MessageQueue("T", "@b", 0)
    assert make_strategy("MACHINE_ROOM", {"consumer_idcs": [""]}).allocate("c", [queue], ["c"]) == [
        queue
    ]
    assert make_strategy("MACHINE_ROOM", {"consumer_idcs": []}).allocate("c", [queue], ["c"]) == []
