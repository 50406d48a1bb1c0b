"""Messages read twice and read late, out of logs made by hand."""

import pytest

from rebalance_core.model import events
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.timing.options import ClockOptions
from tests.unit.timing.hand_made import T0, Group, committed, two_members, written

SEEDS = 400


def group_of(per_second: float, *, ordered: bool = False, handler_ms: int = 0) -> Group:
    """c1 and c2 share two queues, each of which gets so many messages."""
    group = Group()
    group.there("c1", "c2")
    group.topic(-100_000, 2, observed=True)
    group.queue_offsets = tuple(
        written(queue, at, round(per_second * (at + 50_000) / 1_000))
        for queue in range(2)
        for at in (-50_000, 350_000)
    )
    group.settings = GroupSettings(subscriptions=("T",), ordered=ordered)
    group.clock = ClockOptions(handler_ms=handler_ms)
    return group


def again(group: Group, start_ms: int, drop_ms: int = 0) -> list[int]:
    """Messages of queue 0 that c2 reads again, by future; c1 drops it, c2 takes it."""
    drops = [(seed, "c1", 0, drop_ms, -1) for seed in range(SEEDS)]
    takes = [(seed, "c2", 0, start_ms, 1) for seed in range(SEEDS)]
    found: list[int] = (
        group.measured(*drops, *takes, seeds=SEEDS).handovers["read_again"].to_pylist()
    )
    assert len(found) == SEEDS
    return found


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


def test_who_reads_an_orderly_queue_beside_another_reads_rate_times_overlap() -> None:
    group = two_members()
    group.settings = GroupSettings(subscriptions=("T",), ordered=True)
    group.queue_offsets = (written(2, -50_000, 100), written(2, 50_000, 1_100))
    group.committed_offsets = (committed(2, -1_000, 0),)
    made = group.measured(
        (0, "c2", 2, 700, 1), (0, "c1", 2, 1_250, -1), (0, "c2", 1, 700, 1), (0, "c1", 1, 900, -1)
    )
    found = made.handovers.select(["queue_id", "read_again", "skipped"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [(1, None, None), (2, 6, 0)]


def test_a_killed_member_has_not_committed_its_last_message() -> None:
    group = group_of(100)
    group.consumer(0, events.CONSUMER_LOST, "c1")
    assert set(again(group, 20)) <= {0, 1}
    assert mean(again(group, 20)) > 0.99


def test_where_messages_are_few_the_timer_has_committed_most() -> None:
    group = group_of(0.1)
    group.consumer(0, events.CONSUMER_LOST, "c1")
    assert mean(again(group, 20)) == pytest.approx(0.25, abs=0.07)


def test_a_killed_member_that_was_behind_has_not_committed_for_up_to_5_seconds() -> None:
    group = group_of(1_000, ordered=True, handler_ms=5)
    group.consumer(0, events.CONSUMER_LOST, "c1")
    found = again(group, 20)
    assert max(found) < 5_000 + 6
    assert mean(found) == pytest.approx(2_505, rel=0.15)


@pytest.mark.parametrize(
    ("start_ms", "expected"),
    [(8_995, 1.05), (9_005, 0.55), (9_100, 0.4), (9_700, 0.1), (10_500, 0.0)],
)
def test_a_living_member_of_a_concurrent_group_may_be_a_message_behind(
    start_ms: int, expected: float
) -> None:
    group = group_of(10)
    group.consumer(9_000, events.CONSUMER_LOST, "c2")
    group.consumer(8_900, events.CONSUMER_JOIN, "c3")
    drops = [(seed, "c1", 0, 9_000, -1) for seed in range(SEEDS)]
    takes = [(seed, "c3", 0, start_ms, 1) for seed in range(SEEDS)]
    found = group.measured(*drops, *takes, seeds=SEEDS).handovers["read_again"].to_pylist()
    assert mean(found) == pytest.approx(expected, abs=0.08)


@pytest.mark.parametrize("ordered", [False, True])
def test_who_leaves_gracefully_has_in_work_what_comes_in_the_time_of_a_handler_and_no_more(
    ordered: bool,
) -> None:
    group = group_of(10, ordered=ordered, handler_ms=60)
    group.consumer(0, events.CONSUMER_LEAVE, "c1")
    assert mean(again(group, 20)) == pytest.approx(0.6, abs=0.08)
    group.clock = ClockOptions()
    assert set(again(group, 20)) == {0}


def test_a_living_member_of_an_orderly_group_is_seldom_a_message_behind() -> None:
    group = group_of(10, ordered=True)
    group.consumer(9_000, events.CONSUMER_LOST, "c2")
    group.consumer(8_900, events.CONSUMER_JOIN, "c3")
    for start_ms in (9_005, 9_700, 10_500):
        drops = [(seed, "c1", 0, 9_000, -1) for seed in range(SEEDS)]
        takes = [(seed, "c3", 0, start_ms, 1) for seed in range(SEEDS)]
        made = group.measured(*drops, *takes, seeds=SEEDS).handovers["read_again"].to_pylist()
        assert mean(made) == pytest.approx(0.06, abs=0.04)


def test_a_queue_handed_over_while_it_catches_up_is_read_at_the_speed_of_its_reader() -> None:
    group = group_of(10, ordered=True, handler_ms=10)
    group.consumer(0, events.CONSUMER_LEAVE, "c1")
    group.consumer(1_000, events.CONSUMER_JOIN, "c3")
    # 5 s without an owner, so 50 messages wait; c2 pulls after 500 ms, and reads 100 a second
    log = [
        (0, "c1", 0, 0, -1), (0, "c2", 0, 5_000, 1), (0, "c3", 0, 5_700, 1), (0, "c2", 0, 5_900, -1)
    ]  # fmt: skip
    rows = group.measured(*log).handovers.to_pylist()
    assert rows[-1]["overlap_ms"] == 200
    assert 20 <= rows[-1]["read_again"] <= 21


def late(group: Group, gap_ms: int) -> float:
    """Queue-seconds of queue 0 with a message older than a second, of one future."""
    made = group.measured((0, "c1", 0, 0, -1), (0, "c2", 0, gap_ms, 1))
    (row,) = made.totals.to_pylist()
    (found,) = row["late_queue_seconds"]
    return float(found) / 1_000


@pytest.mark.parametrize(
    ("gap_ms", "handler_ms", "expected"),
    [
        (400, 0, 0.0),  # the first pull 500 ms later: read within a second
        (2_500, 0, 1.95),  # 3 s; the first message came 50 ms after the drop, on average
        (2_500, 10, 2.167),  # and 10 % of the speed go to what comes meanwhile
        (2_500, 50, 3.9),  # half of it
    ],
)
def test_messages_wait_from_the_drop_to_the_first_pull_and_until_all_is_caught_up(
    gap_ms: int, handler_ms: int, expected: float
) -> None:
    group = group_of(10, ordered=True, handler_ms=handler_ms)
    group.consumer(0, events.CONSUMER_LEAVE, "c1")
    assert late(group, gap_ms) == pytest.approx(expected, abs=0.002)


def test_how_late_messages_are_is_not_known_where_handlers_do_not_keep_up() -> None:
    group = group_of(10, ordered=True, handler_ms=200)
    group.consumer(0, events.CONSUMER_LEAVE, "c1")
    (row,) = group.measured((0, "c1", 0, 0, -1), (0, "c2", 0, 2_500, 1)).totals.to_pylist()
    assert row["late_queue_seconds"] == [None]
    assert row["from_ms"] == T0


@pytest.mark.parametrize("value", [-1, 0.5, "5ms", True, 86_400_001])
def test_a_handler_time_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"expected whole milliseconds"):
        ClockOptions(handler_ms=value)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"start_up_ms is"):
        ClockOptions(start_up_ms=value)  # type: ignore[arg-type]


def suspended(group: Group, before_ms: int, kind: str = events.CONSUMER_LEAVE) -> Group:
    """c1 is suspended for a time and then stops at 0."""
    group.consumer(-before_ms, events.CONSUMER_SUSPEND, "c1")
    group.consumer(0, kind, "c1")
    return group


def test_a_member_suspended_before_it_leaves_has_nothing_in_its_handlers() -> None:
    busy = group_of(10, handler_ms=500)
    busy.consumer(0, events.CONSUMER_LEAVE, "c1")
    assert set(again(busy, 20)) == {5}
    assert set(again(suspended(group_of(10, handler_ms=500), 400), 20)) == {2}  # 100 ms + 100 ms
    assert set(again(suspended(group_of(10, handler_ms=500), 5_000), 20)) == {0}


def test_a_member_suspended_before_it_is_killed_has_committed_all() -> None:
    killed = group_of(100)
    killed.consumer(0, events.CONSUMER_LOST, "c1")
    assert mean(again(killed, 20)) > 0.99
    half = mean(again(suspended(group_of(100), 2_500, events.CONSUMER_LOST), 20))
    assert half == pytest.approx(0.5, abs=0.08)  # the timer commits every 5 s
    assert set(again(suspended(group_of(100), 6_000, events.CONSUMER_LOST), 20)) == {0}


def test_who_takes_a_queue_beside_a_suspended_member_reads_little_twice() -> None:
    group = group_of(10)
    group.consumer(-3_000, events.CONSUMER_JOIN, "c3")
    group.consumer(0, events.CONSUMER_LEAVE, "c1")
    takes = [(seed, "c3", 0, -2_000, 1) for seed in range(SEEDS)]
    drops = [(seed, "c1", 0, 0, -1) for seed in range(SEEDS)]
    both = group.measured(*takes, *drops, seeds=SEEDS).handovers.to_pylist()
    assert {row["read_again"] for row in both} == {20}
    made = suspended(group, 2_100).measured(*takes, *drops, seeds=SEEDS).handovers.to_pylist()
    assert {row["read_again"] for row in made} <= {0, 1}  # unless the timer has come
    assert {row["overlap_ms"] for row in made} == {0}
    assert {row["drop_ms"] for row in made} == {T0}


def test_messages_of_a_suspended_member_wait() -> None:
    group = suspended(group_of(10), 5_000)
    made = group.measured((0, "c1", 0, 0, -1), (0, "c2", 0, 1_000, 1))
    (row,) = made.handovers.to_pylist()
    assert row["gap_ms"] == 6_400  # to the first pull; the one that the broker held brings one more
    assert made.ownerless_ms.tolist() == [1_000]
    (total,) = made.totals.to_pylist()
    assert total["suspended_ms"] == [4_900]
    assert total["orphan_queue_seconds"] == [1_000]
    assert total["late_queue_seconds"] == [5_350]


@pytest.mark.parametrize(("c1_leaves", "without_owner"), [(5_000, 0), (400, 600), (-5_000, 1_000)])
def test_a_queue_that_moves_on_beside_a_suspended_member_is_unread_in_between(
    c1_leaves: int, without_owner: int
) -> None:
    """c1 holds the queue suspended, c2 takes it and stops, and c3 takes it 1 s later."""
    group = group_of(10)
    group.consumer(-12_000, events.CONSUMER_JOIN, "c3")
    group.consumer(-10_000, events.CONSUMER_SUSPEND, "c1")
    group.consumer(c1_leaves, events.CONSUMER_LEAVE, "c1")
    moves = [
        (0, "c2", 0, -5_000, 1),
        (0, "c2", 0, 0, -1),
        (0, "c3", 0, 1_000, 1),
        (0, "c1", 0, c1_leaves, -1),
    ]
    made = group.measured(*sorted(moves, key=lambda move: move[3]))
    totals = made.totals.to_pylist()
    assert sum(total["orphan_queue_seconds"][0] for total in totals) == without_owner
    # 4,900 ms until c2 takes it, as the pull that the broker holds brings one more message
    assert sum(total["suspended_ms"][0] for total in totals) == 5_900 - without_owner
    assert sum(made.ownerless_ms.tolist()) == without_owner
