import pytest

from rebalance_core.model.errors import AllocationError
from rebalance_core.strategies import make_strategy
from rebalance_core.strategies.averagely import Averagely
from rebalance_core.strategies.pop import allocate_for_pop
from tests.unit.strategies.groups import EIGHT, MEMBERS, queues, short


@pytest.mark.parametrize("share", [-1, 0, 2, 9])
def test_everybody_gets_every_broker_unchecked(share: int) -> None:
    answer = allocate_for_pop(Averagely(), "absent", EIGHT, MEMBERS, share)
    assert short(answer) == "a-1 a-1 a-1 a-1 b-1 b-1 b-1 b-1"
    assert allocate_for_pop(Averagely(), "", [], MEMBERS, share) == []


def test_own_share_and_that_of_the_next() -> None:
    answers = [allocate_for_pop(Averagely(), c, EIGHT, MEMBERS, 1) for c in MEMBERS]
    assert [short(a) for a in answers] == [
        "a0 a1 a2 a3 b0 b1",
        "a3 b0 b1 b2 b3",
        "b2 b3 a0 a1 a2",
    ]
    assert allocate_for_pop(Averagely(), "absent", EIGHT, MEMBERS, 1) == []


def test_more_members_than_queues_take_one_each() -> None:
    few = queues("a0 a1")
    pop = make_strategy("POP", {"inner": "AVG", "pop_share_queue_num": 1})
    assert [short(pop.allocate(c, few, MEMBERS)) for c in MEMBERS] == ["a0", "a1", "a0"]
    with pytest.raises(AllocationError, match="currentCID is empty"):
        pop.allocate(" ", few, [" ", *MEMBERS])
