import pytest

from rebalance_core.model.errors import AllocationError
from rebalance_core.strategies import make_strategy
from rebalance_core.strategies.spi import is_java_blank
from tests.unit.strategies.groups import EIGHT, MEMBERS

CHECKED = ["AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM", "CONSISTENT_HASH", "MACHINE_ROOM_NEARBY-AVG"]


@pytest.mark.parametrize("name", CHECKED)
def test_the_first_empty_argument_is_named(name: str) -> None:
    strategy = make_strategy(name)
    for client_id, queues, message in [
        ("", [], "currentCID is empty"),
        ("c", [], "mqAll is null or mqAll empty"),
        ("c", EIGHT, "cidAll is null or cidAll empty"),
    ]:
        with pytest.raises(AllocationError) as raised:
            strategy.allocate(client_id, queues, [])
        assert raised.value.java_class == "IllegalArgumentException"
        assert raised.value.java_message == message


@pytest.mark.parametrize("name", CHECKED)
def test_an_unlisted_client_gets_nothing(name: str) -> None:
    assert make_strategy(name).allocate("absent", EIGHT, MEMBERS) == []


def test_config_checks_nothing_and_tells_null_from_empty() -> None:
    unset = make_strategy("CONFIG")
    empty = make_strategy("CONFIG", {"config": []})
    assert (unset.allocate("", [], []), unset.returns_null) == ([], True)
    assert (empty.allocate("", [], []), empty.returns_null) == ([], False)


@pytest.mark.parametrize(("text", "blank"), [("", True), (" \t\u3000", True), ("\xa0", False)])
def test_blank_as_java(text: str, blank: bool) -> None:
    assert is_java_blank(text) is blank
