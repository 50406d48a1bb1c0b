"""How large a group is beside those that were measured, and how long its members start."""

from dataclasses import replace

from rebalance_core.timing.extent import Extent, extent_of, start_up_of
from rebalance_core.timing.options import ClockOptions
from tests.unit.timing.futures import happens, joins, story
from tests.unit.timing.test_broker_requests import cluster, options


def test_the_extent_is_of_the_most_members_at_once() -> None:
    changes = [
        happens(10_000, "CONSUMER_LEAVE", "c0"),
        joins(20_000, "c8"),
        joins(20_100, "c9"),
    ]
    assert extent_of(story(*cluster(3, *changes, members=2))) == Extent(3, 3, 4)


def test_a_group_within_the_recordings_is_not_extrapolated() -> None:
    assert Extent(4, 7, 16).extrapolated is None
    assert Extent(177, 8, 17).extrapolated == (
        "177 brokers (measured 2 to 4); 8 members (measured 1 to 7); "
        "17 queues a member (measured 1 to 16)"
    )


def test_a_start_of_a_group_without_joins_is_that_of_its_members() -> None:
    start = start_up_of(story(*cluster(177)), options(rtt_ms=2))
    assert start is not None
    assert start.brokers == 177
    assert 3_500 <= start.median_ms <= start.p99_ms <= 7_000
    assert start.basis == "default, measured on 2 to 4 brokers, round trips of 2 ms"


def test_a_start_that_an_option_states() -> None:
    start = start_up_of(story(*cluster(8)), replace(ClockOptions(), start_up_ms=123))
    assert start is not None
    assert (start.median_ms, start.p99_ms, start.basis) == (123, 123, "given by --start-up-time")


def test_a_group_without_members_starts_none() -> None:
    assert start_up_of(story(*cluster(2, members=0)), ClockOptions()) is None
