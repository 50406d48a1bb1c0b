import random
from collections import Counter

import pytest

from rebalance_core.model.errors import AllocationError, UsageError
from rebalance_core.model.queue import MessageQueue, sort_client_ids
from rebalance_core.strategies import make_strategy, parse_strategy
from rebalance_core.strategies.formula import Question
from rebalance_core.strategies.go import go_strategy
from rebalance_core.strategies.go_machine_room import GoMachineRoom

QUEUES = [MessageQueue("T", f"broker-{b}", q) for b in "ab" for q in range(8)]
IN_ROOMS = [MessageQueue("T", f"room{r}@broker", q) for r in (1, 2) for q in range(4)]


@pytest.mark.parametrize(
    "text",
    ["GO_CONSISTENT_HASH(virtual_nodes=20)", "GO_MACHINE_ROOM(consumer_idcs=a|b|a)",
     "GO_MACHINE_ROOM"],
)  # fmt: skip
def test_texts_are_read_and_written(text: str) -> None:
    assert str(parse_strategy(text)) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("GO_CONSISTENT_HASH", "needs virtual_nodes"),
        ("GO_CONSISTENT_HASH(nodes=3)", "known: virtual_nodes"),
        ("GO_MACHINE_ROOM(consumer_idcs=|)", "the name of a room is empty"),
        ("GO_CONSISTENT_HAHS(virtual_nodes=3)", "did you mean GO_CONSISTENT_HASH?"),
    ],
)
def test_wrong_texts_are_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_strategy(text)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("java", "go"),
    [
        ("AVG", "AVG"),
        ("AVG_BY_CIRCLE", "AVG_BY_CIRCLE"),
        ("CONSISTENT_HASH(virtual_nodes=7)", "GO_CONSISTENT_HASH(virtual_nodes=7)"),
        ("MACHINE_ROOM(consumer_idcs=a|b)", "GO_MACHINE_ROOM(consumer_idcs=a|b)"),
        ("MACHINE_ROOM_NEARBY-AVG", "AVG"),
    ],
)
def test_a_go_member_divides_by_its_own_form_of_the_groups_strategy(java: str, go: str) -> None:
    assert str(go_strategy(parse_strategy(java))) == go


def test_mixed_groups_leave_a_fifth_of_their_queues_without_an_owner_and_as_many_with_two() -> None:
    # executed clients: 20.4 % and 20.4 %
    rng = random.Random(40)
    java = make_strategy("CONSISTENT_HASH", {"virtual_nodes": 10})
    go = go_strategy(java)
    counts: Counter[int] = Counter()
    for _ in range(200):
        ids = sort_client_ids({f"10.0.{rng.randrange(9)}.{rng.randrange(250)}@1" for _ in range(6)})
        members = [(rng.choice((go, java)), client_id) for client_id in ids]
        shares = [one.allocate(client_id, QUEUES, ids) for one, client_id in members]
        readers = Counter(queue for share in shares for queue in share)
        counts.update(readers[queue] for queue in QUEUES)
    assert 0.15 < counts[0] / counts.total() < 0.25
    assert 0.15 < counts[2] / counts.total() < 0.25


def test_a_slice_beyond_the_queues_panics() -> None:
    strategy = GoMachineRoom(("room1", "room1", "room1"))
    with pytest.raises(AllocationError, match=r"index out of range \[6\] with length 4"):
        strategy.allocate("b", IN_ROOMS[:4], ["a", "b"])


@pytest.mark.parametrize("seed", range(20))
def test_the_formula_names_the_owner(seed: int) -> None:
    rng = random.Random(seed)
    ids = sort_client_ids(f"10.0.0.{rng.randrange(30)}@{rng.randrange(99)}" for _ in range(5))
    for text, queues in (
        (f"GO_CONSISTENT_HASH(virtual_nodes={rng.randrange(4)})", QUEUES),
        ("GO_MACHINE_ROOM(consumer_idcs=room2)", IN_ROOMS),
    ):
        strategy = parse_strategy(text)
        for queue in queues:
            owners = [c for c in ids if queue in strategy.allocate(c, queues, ids)]
            assert strategy.formula(Question(queue, queues, ids)).owner == next(
                iter(owners), None
            ), seed
