"""Observations made while a change is under way, against every view that a member may have."""

import random
from collections.abc import Sequence

import pytest

from rebalance_core.audit.disagreements import disagreements, is_certain
from rebalance_core.audit.observations import ClientObservation, QueueObservation, address_of
from rebalance_core.audit.prediction import Prediction
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import allocate_group, parse_strategy
from tests.unit.audit.snapshots import join, leave, ms, snapshot_of, topic

QUEUES = [MessageQueue("T", "a", number) for number in range(8)]
CLIENTS = [f"10.0.0.{number}@{number}#1" for number in range(1, 6)]
SETTLED_S, CHANGED_S, SEEN_S = 10.0, 500.0, 506.0

Owners = dict[MessageQueue, str]


def _owners(members: Sequence[str]) -> Owners:
    """Who owns each queue if these are the members, by AVG itself."""
    shares = allocate_group(parse_strategy("AVG"), QUEUES, sorted(members)) if members else {}
    return {queue: owners[0] for queue, owners in shares.items() if owners}


@pytest.mark.parametrize("seed", range(60))
def test_what_differs_is_what_no_member_may_hold_by_any_view(seed: int) -> None:
    draw = random.Random(seed)
    members = draw.sample(CLIENTS, draw.randint(1, 4))
    happened = [topic(read=8), *(join(one, at=SETTLED_S) for one in members)]
    by_view = [_owners(members)]
    for number in range(draw.randint(1, 3)):
        one = draw.choice(CLIENTS)
        change = leave if one in members else join
        happened.append(change(one, at=CHANGED_S + number))
        members = [*(set(members) ^ {one})]
        by_view.append(_owners(members))
    group = snapshot_of(*happened, until=SEEN_S + 1)
    prediction = Prediction(group)
    views = prediction.views(ms(SEEN_S), ms(SEEN_S))
    assert views is not None
    for queue in QUEUES:
        possible = {owners.get(queue) for owners in by_view}
        fitting = possible | ({None} if len(possible) > 1 else set())
        for holder in (*CLIENTS, None):
            address = address_of(holder or "")
            shown = QueueObservation(queue, ms(SEEN_S), address, "dump")
            differs = any(disagreements(shown, prediction, views))
            assert differs == (holder not in fitting), (queue, holder)
            assert is_certain(shown, prediction, views) == (len(possible) == 1)
    for client_id in CLIENTS:
        held = frozenset(draw.sample(QUEUES, 3))
        answer = ClientObservation(client_id, ms(SEEN_S), held, "dump")
        wrong = {
            queue
            for queue in QUEUES
            if (queue in held) not in {owners.get(queue) == client_id for owners in by_view}
        }
        found = {one.queue for one in disagreements(answer, prediction, views)}
        assert {queue for queue in found if queue.topic == "T"} == wrong
