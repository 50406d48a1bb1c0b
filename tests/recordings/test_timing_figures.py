"""The measures of observed and simulated time on hand-made input."""

import numpy as np

from rebalance_core.timing.moves import first_actions, gaps
from tests.recordings.tables import Tables
from tests.recordings.timings.actions import Action
from tests.recordings.timings.changes import Change, changes_of
from tests.recordings.timings.compared import Compared, Given, observed_timeline
from tests.recordings.timings.figures import ENOUGH, figures
from tests.recordings.timings.forms import forms, in_each_future
from tests.recordings.timings.handovers import hand_overs

Q = ("T", "a", 0)
CHANGE = Change("r", 1, "g", "queues", 1_000, 1_000, 50_000, frozenset())


def action(at_ms: int, client: str, added: bool) -> Action:
    return Action(at_ms, client, "g", Q, added, at_ms)


GAP_THEN_OVERLAP = [
    action(0, "c1", True),
    action(3_000, "c1", False),
    action(8_000, "c2", True),
    action(20_000, "c3", True),
    action(24_000, "c2", False),
]


def test_a_gap_and_an_overlap_of_one_queue() -> None:
    found = [
        (one.from_client, one.to_client, one.gap_ms)
        for one in hand_overs(GAP_THEN_OVERLAP, 1_000, 50_000)
    ]
    assert found == [("c1", "c2", 5_000), ("c2", "c3", -4_000)]
    line = observed_timeline(GAP_THEN_OVERLAP)
    assert gaps(line, [CHANGE])[0, Q].tolist() == [1_000.0]  # 5 s without, 4 s with two owners
    first = {key[1:]: value.tolist() for key, value in first_actions(line, [CHANGE]).items()}
    assert first == {
        ("c1", "drop"): [2_000.0],
        ("c2", "add"): [7_000.0],
        ("c2", "drop"): [23_000.0],
        ("c3", "add"): [19_000.0],
    }


def test_a_queue_that_no_member_takes_again_has_no_gap() -> None:
    line = observed_timeline([action(0, "c1", True), action(3_000, "c1", False)])
    assert gaps(line, [CHANGE]) == {}


def compared(observed_ms: float, *simulated_ms: float) -> Compared:
    futures_ms = np.full(2, np.nan)
    futures_ms[: len(simulated_ms)] = simulated_ms
    return Compared("drop", "c1", observed_ms, futures_ms, CHANGE, "5.3.3")


def test_figures_of_a_kind() -> None:
    part = [compared(1_000, 0, 1_000), compared(5_000, 2_000, 3_000), compared(7_000)]
    made = figures("queues", "5.3", part)
    assert (made.count, made.inside, made.middle) == (3, 1, 0)
    assert made.median_s == (5.0, 1.0)


def test_quantiles_of_all_futures_and_within_each() -> None:
    part = [
        Compared("drop", str(number), 1_000.0, np.array([0.0, each * 2_000.0]), CHANGE, "5.3.3")
        for number, each in enumerate([0, 1] + [1] * (ENOUGH - 2))
    ]
    (made,) = forms({Given.TABLES: part})
    assert (made.kind, made.count) == ("queues", ENOUGH)
    # The first future has nothing but 0 s, the second 2 s and one 0 s.
    assert in_each_future(part, 0.5).tolist() == [0.0, 2_000.0]
    assert (made.median.pooled, made.median.per_future) == (0.0, 1.0)
    assert (made.median.pooled_error, made.median.per_future_error) == (-1.0, 0.0)
    assert made.median.place == 0.5
    assert (made.high.pooled, made.high.per_future) == (2.0, 1.0)
    assert forms({Given.TABLES: part[1:]}) == []


def test_a_future_in_which_something_does_not_happen_has_no_value_of_it() -> None:
    part = [compared(1_000, 500), compared(1_000, 1_500, 2_500)]
    assert in_each_future(part, 0.5).tolist() == [1_000.0, 2_500.0]


def test_changes_close_together_are_one_and_windows_abut() -> None:
    def event(at_ms: int, number: int, kind: str, **more: object) -> dict[str, object]:
        return {"event_ms": at_ms, "sequence": number, "event_type": kind} | more

    events = [
        event(0, 0, "TOPIC_CONFIG", topic="T", broker_name="a"),
        event(10_000, 1, "CONSUMER_JOIN", consumer_group="g", channel_id="c1/7",
              subscriptions=["T"]),
        event(30_000, 2, "TOPIC_CONFIG", topic="T", broker_name="a"),
        event(30_200, 3, "TOPIC_CONFIG", topic="T", broker_name="b"),
        event(31_000, 4, "TOPIC_CONFIG", topic="other", broker_name="b"),
        event(40_000, 5, "CONSUMER_LOST", consumer_group="g", channel_id="c1/7"),
    ]  # fmt: skip
    tables: Tables = {"cluster_events": events, "consumer_groups": [{"consumer_group": "g"}]}
    found = [
        (one.kind, one.number, one.begin_ms, one.event_ms, one.until_ms)
        for one in changes_of("r", tables, 60_000)
    ]
    assert found == [
        ("join", 1, 9_400, 10_000, 30_000),
        ("queues", 2, 30_000, 30_200, 40_000),
        ("kill", 5, 40_000, 40_000, 60_000),
    ]
