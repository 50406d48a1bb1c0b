"""Hand-overs out of logs made by hand: who, when, gap, overlap, messages."""

from typing import Any

import pytest

from rebalance_core.contracts.propagation import HANDOVERS
from rebalance_core.model import events
from rebalance_core.model.group_settings import BROADCASTING, GroupSettings
from rebalance_core.timing.measured import Measured
from tests.unit.timing.hand_made import T0, Group, two_members

SETTLED = 240_000


def rows(made: Measured) -> list[tuple[Any, ...]]:
    """(queue, from, to, drop, start, gap, overlap), times after T0."""
    assert made.handovers.schema == HANDOVERS.arrow_schema()
    return [
        (
            row["queue_id"],
            row["from_client_id"],
            row["to_client_id"],
            *(None if row[name] is None else row[name] - T0 for name in ("drop_ms", "start_ms")),
            row["gap_ms"],
            row["overlap_ms"],
        )
        for row in made.handovers.to_pylist()
    ]


def test_a_queue_is_dropped_and_taken_later() -> None:
    made = two_members().measured((0, "c1", 2, 7, -1), (0, "c2", 2, 715, 1))
    assert rows(made) == [(2, "c1", "c2", 7, 715, 708, 0)]
    (row,) = made.handovers.to_pylist()
    assert (row["cluster"], row["consumer_group"], row["seed"]) == ("c", "g", 0)
    assert (row["change_ms"], row["cause"]) == (T0, "CONSUMER_JOIN")
    assert (row["topic"], row["broker_name"], row["skipped"]) == ("T", "a", None)


@pytest.mark.parametrize(
    ("settings", "gaps"),
    [
        ({"client_version": "5.0"}, [1_208, 172, 0]),
        ({"client_version": "4.9"}, [708, 0, 0]),
        ({"client_version": "5.3", "consumer_type": "LITE_PULL"}, [708, 0, 0]),
    ],
)
def test_push_clients_of_5_wait_half_a_second_before_they_pull(
    settings: dict[str, str], gaps: list[int]
) -> None:
    group = two_members()
    group.settings = GroupSettings(subscriptions=("T",), **settings)  # type: ignore[arg-type]
    made = group.measured(
        (0, "c1", 2, 7, -1), (0, "c2", 2, 715, 1),
        (0, "c2", 3, 673, 1), (0, "c1", 3, 1_001, -1),
        (0, "c2", 1, 100, 1), (0, "c1", 1, 1_001, -1),
    )  # fmt: skip
    found = {row["queue_id"]: row["gap_ms"] for row in made.handovers.to_pylist()}
    assert [found[2], found[3], found[1]] == gaps
    assert made.partial.to_pylist()[0]["gap_ms"] == sorted(set(gaps))


def test_a_queue_is_taken_before_it_is_dropped() -> None:
    made = two_members().measured((0, "c2", 2, 673, 1), (0, "c1", 2, 1_001, -1))
    assert rows(made) == [(2, "c1", "c2", 1_001, 673, 0, 328)]


def test_who_never_gives_up_overlaps_until_the_group_is_at_rest() -> None:
    made = two_members().measured((0, "c2", 2, 700, 1))
    assert rows(made) == [(2, "c1", "c2", None, 700, 0, SETTLED - 700)]


def test_a_queue_that_no_member_takes() -> None:
    made = two_members().measured((0, "c1", 2, 7, -1))
    assert rows(made) == [(2, "c1", None, 7, None, SETTLED - 7, 0)]


def test_a_detour_is_several_rows() -> None:
    made = two_members().measured(
        (0, "c1", 3, 10, -1), (0, "c2", 3, 12, 1), (0, "c2", 3, 1_012, -1), (0, "c1", 3, 1_020, 1)
    )
    assert rows(made) == [(3, "c1", "c2", 10, 12, 2, 0), (3, "c2", "c1", 1_012, 1_020, 8, 0)]


def test_who_takes_a_queue_for_a_while_beside_its_owner_hands_nothing_on() -> None:
    made = two_members().measured(
        (0, "c2", 0, 100, 1), (0, "c2", 0, 150, -1), (0, "c1", 0, 900, -1), (0, "c2", 0, 950, 1)
    )
    assert rows(made) == [(0, "c1", "c2", 900, 100, 0, 50), (0, "c1", "c2", 900, 950, 50, 0)]


def test_each_seed_has_its_own_rows() -> None:
    made = two_members().measured(
        (0, "c1", 2, 7, -1), (0, "c2", 2, 9, 1), (1, "c2", 2, 700, 1), seeds=3
    )
    assert made.handovers["seed"].to_pylist() == [0, 1]
    assert [row[5:] for row in rows(made)] == [(2, 0), (0, SETTLED - 700)]


def test_the_first_member_takes_queues_from_no_member() -> None:
    group = Group()
    group.topic(-100_000, 2)
    group.consumer(0, events.CONSUMER_JOIN, "c1")
    made = group.measured((0, "c1", 0, 700, 1), (0, "c1", 1, 705, 1))
    assert rows(made) == [(0, None, "c1", None, 700, 700, 0), (1, None, "c1", None, 705, 705, 0)]


def test_a_start_before_the_join_was_logged_has_no_gap() -> None:
    group = Group()
    group.topic(-100_000, 1)
    group.consumer(0, events.CONSUMER_JOIN, "c1")
    made = group.measured((0, "c1", 0, -20, 1))
    assert rows(made) == [(0, None, "c1", None, -20, 0, 0)]
    assert made.handovers["change_ms"].to_pylist() == [T0]


def test_a_new_queue_waits_from_its_creation() -> None:
    group = two_members()
    group.topic(10_000, 5)
    made = group.measured((0, "c1", 4, 41_000, 1))
    assert rows(made) == [(4, None, "c1", None, 41_000, 31_000, 0)]
    assert made.handovers["cause"].to_pylist() == ["TOPIC_CONFIG"]


def test_a_broker_that_was_away_parts_two_owners() -> None:
    group = Group()
    group.there("c1")
    group.topic(-100_000, 1, "a", observed=True)
    group.topic(-100_000, 1, "b", observed=True)
    group.broker(0, events.BROKER_DOWN, "b")
    group.broker(60_000, events.BROKER_UP, "b")
    made = group.measured((0, "c1", 1, 25_000, -1), (0, "c1", 1, 85_000, 1))
    assert rows(made) == [
        (0, "c1", None, 25_000, None, 0, 0),
        (0, None, "c1", None, 85_000, 25_000, 0),
    ]
    assert made.handovers["cause"].to_pylist() == ["BROKER_DOWN", "BROKER_UP"]


def test_queues_of_a_dead_broker_are_handed_over_without_a_gap() -> None:
    group = two_members()
    group.topic(-100_000, 1, "b", observed=True)
    group.broker(1_000, events.BROKER_DOWN, "b")
    made = group.measured((0, "c1", 4, 2_000, -1), (0, "c2", 4, 3_000, 1))
    assert rows(made) == [(0, "c1", "c2", 2_000, 3_000, 0, 0)]


def test_changes_soon_after_another_are_one_run() -> None:
    group = two_members()
    group.consumer(5_000, events.CONSUMER_JOIN, "c3")
    made = group.measured((0, "c1", 2, 100, -1), (0, "c3", 2, 5_700, 1))
    assert rows(made) == [(2, "c1", "c3", 100, 5_700, 5_600, 0)]
    assert made.handovers["change_ms"].to_pylist() == [T0 + 5_000]


def test_a_group_at_rest_parts_two_owners() -> None:
    group = two_members()
    group.consumer(900_000, events.CONSUMER_JOIN, "c3")
    made = group.measured((0, "c1", 2, 100, -1), (0, "c3", 2, 900_700, 1))
    assert rows(made) == [
        (2, "c1", None, 100, None, SETTLED - 100, 0),
        (2, None, "c3", None, 900_700, 700, 0),
    ]


def test_the_last_member_leaves_and_one_comes_back() -> None:
    group = Group()
    group.there("c1")
    group.topic(-100_000, 1, observed=True)
    group.consumer(0, events.CONSUMER_LEAVE, "c1")
    group.consumer(8_000, events.CONSUMER_JOIN, "c2")
    made = group.measured((0, "c1", 0, 0, -1), (0, "c2", 0, 8_700, 1))
    assert rows(made) == [(0, "c1", "c2", 0, 8_700, 8_700, 0)]


def test_clients_that_broadcast_hand_nothing_over() -> None:
    group = two_members()
    group.settings = GroupSettings(subscriptions=("T",), message_model=BROADCASTING)
    made = group.measured(*((0, "c2", queue, 700, 1) for queue in range(4)))
    assert rows(made) == []
    (row,) = made.partial.to_pylist()
    assert (row["convergence_ms"], row["gap_ms"]) == ([700], [])
    assert (row["orphan_queue_ms"], row["double_queue_ms"]) == (0, 0)
