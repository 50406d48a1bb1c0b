"""Who holds each queue, out of the holdings of processes."""

from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.movement import owners_of, previous_owner

ONE, TWO, THREE = (MessageQueue("T", "a", number) for number in range(3))
HOLDINGS = {
    ("z", None): frozenset({ONE, TWO}),
    ("x", None): frozenset({ONE, THREE}),
    ("z", "2"): frozenset({ONE}),
}


def test_owners_are_there_once_each_in_the_order_of_the_holdings() -> None:
    assert owners_of(HOLDINGS) == {ONE: ("z", "x"), TWO: ("z",), THREE: ("x",)}


def test_of_several_owners_before_the_first_that_is_still_there_counts() -> None:
    assert previous_owner(HOLDINGS, {"x", "z"}) == {ONE: "z", TWO: "z", THREE: "x"}
    assert previous_owner(HOLDINGS, {"x"}) == {ONE: "x", THREE: "x"}
    assert previous_owner(HOLDINGS, set()) == {}
