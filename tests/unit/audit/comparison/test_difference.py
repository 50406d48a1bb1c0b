"""Differences of a group: each is judged as if it stood alone, though much is asked only once."""

import random

import pytest

from rebalance_core.audit.case import GroupCase
from rebalance_core.audit.comparison.compare import compare
from rebalance_core.audit.comparison.difference import (
    FOREIGN,
    STALE,
    UNEXPLAINED,
    Difference,
    classified,
)
from rebalance_core.audit.comparison.observations import ClientObservation, observations
from rebalance_core.audit.comparison.prediction import Prediction
from rebalance_core.strategies import allocate_group, parse_strategy
from tests.unit.audit.cases import Row, case_of, fact, join, leave, listed_at, topic
from tests.unit.audit.comparison.group_rows import A, B, progress, status
from tests.unit.audit.comparison.group_rows import case as group_case
from tests.unit.audit.sharing import listed_by
from tests.unit.audit.sharing import status as status_of

CLIENTS = "10.0.0.1@1", "10.0.0.2@2", "10.0.0.3@3"
EVENTS = (
    *(topic(name, read=5) for name in ("T", "U")),
    *(join(client, "T", "U", at=10) for client in CLIENTS[:2]),
    join(CLIENTS[2], "T", "U", at=300),
    leave(CLIENTS[0], 600),
)
ROUNDS = 200, 201, 500, 900


def dumped(rng: random.Random) -> GroupCase:
    """Four rounds of dumps in three epochs: each topic divided in its own way, some by chance."""
    ledger = Prediction(case_of(*EVENTS))
    facts, listed = [], []
    for at in ROUNDS:
        source = f"dump{at}"
        facts.append(fact("DUMP", at, command="consumerProgress") | {"source": source})
        for name in ("T", "U"):
            present = [c for c in CLIENTS if ledger.held(c, facts[-1]["first_ms"])]
            queues = ledger.queues(name, facts[-1]["first_ms"])
            strategy = rng.choice(["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
            owners = allocate_group(parse_strategy(strategy), queues, present)
            for queue in queues:
                holder = rng.choice(CLIENTS) if rng.random() < 0.1 else owners[queue][0]
                facts.append(
                    fact("QUEUE_PROGRESS", at, **queue._asdict(), with_clients=True,
                         client_ip=holder.partition("@")[0]) | {"source": source}
                )  # fmt: skip
        listed += listed_at("a", at, *rng.sample(CLIENTS, 2))
    return case_of(*EVENTS, facts=facts, members=listed)


@pytest.mark.parametrize("seed", range(8))
def test_every_difference_is_judged_as_if_it_stood_alone(seed: int) -> None:
    case = dumped(random.Random(seed))
    observed, ledger = observations(case), Prediction(case)
    together = compare(case).differences
    alone = [
        one
        for each in together
        for one in classified([Difference(each.queue, each.predicted, each.live, each.asked,
                                          each.at_ms, each.source)], observed, case, ledger)
    ]  # fmt: skip
    assert list(together) == alone, f"seed {seed}"


def test_the_random_groups_have_differences_of_several_classes_moments_and_topics() -> None:
    results = [compare(dumped(random.Random(seed))) for seed in range(8)]
    differences = [one for result in results for one in result.differences]
    assert {STALE, FOREIGN, UNEXPLAINED} <= {one.why for one in differences}
    assert len({one.at_ms for one in differences}) == len(ROUNDS)
    assert len({one.queue.topic for one in differences}) == 2


def test_observations_of_one_time_come_in_the_order_of_their_queues() -> None:
    facts = [*reversed(progress(5, *["10.0.0.1"] * 12)), *status(B, 5), *status(A, 5)]
    asked = [
        one.client_id if isinstance(one, ClientObservation) else one.queue.queue_id
        for one in observations(group_case(*facts))
    ]
    assert asked == [A, B, *range(12)]


def test_a_stale_holder_is_told_with_the_time_of_the_day() -> None:
    case = case_of(*EVENTS, facts=[
        fact("DUMP", 500, command="consumerStatus", client_id=CLIENTS[1]),
        fact("HELD_QUEUE", 500, dropped=False, topic="T", broker_name="a", queue_id=4,
             client_id=CLIENTS[1]),
    ])  # fmt: skip
    notes = {one.note for one in compare(case).differences if one.live}
    assert notes == {f"{CLIENTS[1]} should have given it up at 2026-11-18 11:11:40Z"}


def test_a_proxy_s_list_of_members_explains_what_a_client_behind_it_holds() -> None:
    x, y = CLIENTS[:2]
    held = [
        *listed_by("p1", 502, y),
        *(
            row
            for at, who in ((500, x), (501, y))
            for row in status_of(who, at, pulled="a:0 a:1 a:2 a:3", retry="a")
        ),
    ]
    case = case_of(topic(), join(x), join(y), members=listed_at("a", 499, x), facts=held)
    found = {(one.asked, one.why, one.note) for one in compare(case).differences}
    assert found == {
        (x, STALE, f"a lists other members: {x}"),
        (y, STALE, f"p1 lists other members: {y}"),
    }


def test_queues_of_a_client_behind_a_proxy_show_no_holder() -> None:
    def shown(*lists: Row) -> GroupCase:
        nobody = fact("QUEUE_PROGRESS", 500, topic="T", broker_name="a", queue_id=0,
                      with_clients=True, client_ip="")  # fmt: skip
        dump = fact("DUMP", 500, command="consumerProgress")
        return case_of(topic(), join(CLIENTS[0]), facts=[dump, nobody, *lists])

    assert len(compare(shown()).differences) == 1
    assert compare(shown(*listed_by("p1", 502, CLIENTS[0]))).differences == ()
