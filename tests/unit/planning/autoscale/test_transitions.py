"""Steps between numbers of members, as simulated clients make them."""

from collections import Counter

import numpy as np

from rebalance_core.planning.autoscale.transitions import NO_MEMBER, Transitions
from rebalance_core.planning.scenario.pods import Start
from rebalance_core.timing.options import ClockOptions
from tests.unit.planning.autoscale.groups import QUEUES, steady


def transitions(name: str = "checkout", start: Start | None = None) -> Transitions:
    clock = ClockOptions(exact_times=True)
    return Transitions(steady(name), start or Start(15_000, 0), 0, np.arange(8), clock)


def test_members_at_rest_divide_evenly() -> None:
    made = transitions()
    for members in (1, 3, 12):
        shares = Counter(made.resting(members).tolist())
        assert set(shares) == set(range(members))
        assert max(shares.values()) - min(shares.values()) <= 1
    assert set(made.resting(0).tolist()) == {NO_MEMBER}


def test_a_pod_reads_once_it_has_started() -> None:
    step = transitions().made(4, ((0, 1),))
    assert step.members == 5
    assert step.pods[14] == 4
    assert step.pods[15] == 5
    assert not (step.owner[:, :15] == 4).any()
    assert set((step.owner[:, -1] == 4).sum(axis=1).tolist()) <= {6, 7}
    assert (step.held[:, -1] == 1).all()
    assert (step.held[:, 15:].min(axis=(1, 2)) < 1).all()  # each hand-over costs something
    assert (step.over_s <= step.length_s).all()


def test_a_leave_stops_reading_at_once() -> None:
    step = transitions().made(4, ((0, -1),))
    assert step.members == 3
    assert not (step.owner[:, -1] == 3).any()
    # its eight queues wait for their next members
    assert ((1 - step.held.astype(float)).sum(axis=(1, 2)) > 0).all()
    assert (step.taken.sum(axis=(1, 2)) >= 8).all()


def test_a_pod_that_has_not_started_is_the_first_to_go() -> None:
    step = transitions().made(4, ((0, 1), (5, -1)))
    assert step.members == 4
    assert int(step.taken.sum()) == 0
    assert (step.held == 1).all()
    assert (step.pods == 4).all()


def test_later_steps_leave_the_first_seconds_as_they_were() -> None:
    made = transitions(start=Start(15_000, 4_000))
    alone, both = made.made(4, ((0, 2),)), made.made(4, ((0, 2), (45, -3)))
    length = min(alone.length_s, both.length_s)
    assert length > 10
    assert (alone.owner[:, :length] == both.owner[:, :length]).mean() > 0.99
    assert both.members == 3
    assert made.played == 2
    made.made(4, ((0, 2),))
    assert made.played == 2


def test_zero_members_read_nothing_until_the_first_joins() -> None:
    step = transitions().made(0, ((0, 1),))
    assert not step.held[:, :15].any()
    assert (step.owner[:, -1] == 0).all()


def test_a_taker_begins_where_it_took_and_not_where_it_pulls_first() -> None:
    # the giver reads on until the first pull, half a second later, and the taker reads that again
    step = transitions().made(4, ((0, 4),))
    assert ((step.both > 0) & (step.held < 1)).any()
    assert ((step.both > 0) <= (step.held > 0)).all()


def test_an_orderly_group_is_never_read_twice() -> None:
    step = transitions("ledger").made(8, ((0, -4),))
    assert not step.both.any()
    assert step.owner.shape == (8, step.length_s, QUEUES)
