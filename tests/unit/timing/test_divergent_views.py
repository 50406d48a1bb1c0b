"""Views that differ (rocketmq.md §8): each pathology comes out of the events that cause it."""

from typing import Any

import pytest

from rebalance_core.protocol.settling_windows import MASTER_BACK_MS
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.reference import future as loop_future
from rebalance_core.timing.reference import rebalancing
from rebalance_core.timing.vectorized.reference_only import BROKER_DIVIDES, reason_of
from tests.unit.replay.histories import event, topic
from tests.unit.timing.futures import EXACT, Future, futures, happens, joins, ms, two_brokers

V4: dict[str, Any] = {"client_version": "4.9.7", "broker_version": "4.9.7"}
V5: dict[str, Any] = {"client_version": "5.3.3"}
THREE = [*two_brokers(), joins(5_100, "x"), joins(17_300, "y"), joins(31_700, "z")]
RESTART = [
    event(90_300, "BROKER_DOWN", broker_name="b"),
    event(150_300, "BROKER_UP", broker_name="b"),
]
OBSERVED = [
    topic(0, 4, detail="OBSERVED"),
    *(joins(0, client, detail="OBSERVED") for client in "xyz"),
]
LATE = ClockOptions(exact_times=True, late_share=1.0, late_ms=60_000)


@pytest.mark.parametrize("versions", [V4, V5], ids=["4.9", "5.3"])
def test_a_group_settles_with_one_owner_a_queue(versions: dict[str, Any]) -> None:
    for future in futures(*THREE, **versions):
        assert [len(who) for who in future.owners(60_000).values()] == [1] * 8
        assert len(future.queues_of("z", 60_000)) == 2


@pytest.mark.parametrize("versions", [V4, V5], ids=["4.9", "5.3"])
def test_a_split_view_has_orphans_and_queues_with_two_owners(versions: dict[str, Any]) -> None:
    lost = happens(80_900, "CONSUMER_LOST", "z", broker_name="b")
    orphans = shared = 0
    for future in futures(*THREE, lost, **versions):
        moments = range(90_000, 320_000, 10_000)
        orphans += any(future.orphans(at) for at in moments)
        shared += any(future.shared(at) for at in moments)
    assert orphans == shared == 20


def test_who_is_missing_in_a_list_drops_everything_and_takes_it_again() -> None:
    lost = happens(80_900, "CONSUMER_LOST", "z", broker_name="b")
    for future in futures(*THREE, lost, **V5):
        dropped = [at for at, _ in future.drops("z", 80_900)]
        assert dropped
        assert future.queues_of("z", dropped[0] + 1) == []
        assert [at for at, _ in future.takes("z", dropped[0])]


@pytest.mark.parametrize("channel", ["z/1", "z/2"], ids=["same channel", "new channel"])
def test_a_process_that_comes_back_to_the_broker_mends_the_split(channel: str) -> None:
    lost = happens(80_900, "CONSUMER_LOST", "z", broker_name="b")
    back = joins(140_300, "z", channel, broker_name="b")
    for future in futures(*THREE, lost, back, **V5):
        assert [len(who) for who in future.owners(170_000).values()] == [1] * 8


def test_a_restarted_brokers_partial_list_makes_members_drop_all_queues() -> None:
    emptied = 0
    for future in futures(*THREE, *RESTART, **V4):
        for client in "xyz":
            after = [at for at, _ in future.drops(client, 150_300)]
            emptied += any(not future.queues_of(client, at + 0.5) for at in after)
        assert future.orphans(330_000) == future.shared(330_000) == 0
    assert emptied >= 10


def test_from_5_2_on_a_fresh_broker_hears_of_a_client_with_its_first_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without that rule its first heartbeat would wake the group later."""
    new_broker = [*OBSERVED, topic(100_300, 4, broker="b")]
    with_rule = [woken(future) for future in futures(*new_broker, seeds=60, **V5)]
    monkeypatch.setattr(rebalancing, "CHANNEL_ACTIVE", (9, 0, 0))
    without = [woken(future) for future in futures(*new_broker, seeds=60, **V5)]
    pairs = [pair for pair in zip(with_rule, without, strict=True) if pair[0] != pair[1]]
    assert pairs
    assert all(earlier < later for earlier, later in pairs)


def woken(future: Future) -> list[int]:
    """When members run passes because they are told something."""
    return sorted(one.begin_us for one in future.played.passes if one.trigger == "woken")


@pytest.mark.parametrize("detail", [None, "REFUSED", "ACTING"])
@pytest.mark.parametrize("versions", [V4, V5], ids=["4.9", "5.3"])
def test_a_master_that_comes_back_lists_few_members_for_a_while(
    versions: dict[str, Any], detail: str | None
) -> None:
    """Its slaves list all of them, and are asked until a poll has the master's address."""
    away = event(90_300, "MASTER_DOWN", broker_name="b", detail=detail)
    back = event(200_300, "MASTER_UP", broker_name="b")
    alone = shared = 0
    for future in futures(*THREE, away, back, **versions):
        assert [change.causes for change in future.timeline.changes][-2:] == [
            ("MASTER_DOWN",),
            ("MASTER_UP",),
        ]
        assert [
            at for client in "xyz" for at, _ in future.drops(client, 90_300) if at < 200_300
        ] == []
        moments = range(200_300, 260_300, 100)
        alone += any(len(future.queues_of(client, at)) == 8 for client in "xyz" for at in moments)
        shared += any(future.shared(at) for at in moments)
        end_ms = 200_300 + MASTER_BACK_MS
        assert [len(who) for who in future.owners(end_ms).values()] == [1] * 8
    assert alone >= 5
    assert shared >= 10


def test_members_that_come_and_go_while_a_master_is_away_are_announced_by_its_slaves() -> None:
    away = (
        event(90_300, "MASTER_DOWN", broker_name="a"),
        event(90_301, "MASTER_DOWN", broker_name="b"),
    )
    changes = joins(140_300, "w"), happens(170_300, "CONSUMER_LEAVE", "x")
    for future in futures(*THREE, *away, *changes, **V5):
        assert len(future.queues_of("w", 165_000)) == 2
        assert [len(who) for who in future.owners(175_000).values()] == [1] * 8
        assert future.queues_of("x", 175_000) == []


def test_a_master_that_a_group_does_not_read_from_is_nothing_to_it() -> None:
    away = (
        event(90_300, "MASTER_DOWN", broker_name="c"),
        event(150_300, "MASTER_UP", broker_name="c"),
    )
    for with_it, without in zip(futures(*THREE, *away, **V5), futures(*THREE, **V5), strict=True):
        assert not with_it.timeline.masters
        assert with_it.held == without.held


def test_a_broker_that_divides_for_members_does_so_by_its_own_route_poll(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It polls each 30 s, and members ask one broker or the other in their next pass."""
    more = [*THREE, topic(100_300, 8, broker="a")]
    by_broker = {**V5, "rebalance_mode": "BROKER"}

    def first_takes() -> list[float]:
        found = []
        for future in futures(*more, seeds=40, **by_broker):
            assert reason_of(future.timeline) == BROKER_DIVIDES
            assert [len(who) for who in future.owners(190_000).values()] == [1] * 12
            found.append(min(at for client in "xyz" for at, _ in future.takes(client, 100_300)))
        return found

    polled = first_takes()
    assert max(polled) > 100_300 + 25_000
    monkeypatch.setattr(
        loop_future.Future, "brokers_poll_us", lambda self, broker, lifetime, at: at
    )
    prompt = first_takes()
    assert max(prompt) < 100_300 + 22_000
    assert min(polled) >= min(prompt)


@pytest.mark.parametrize("versions", [V4, V5], ids=["4.9", "5.3"])
def test_a_thawed_brokers_duplicates_leave_queues_without_owner(versions: dict[str, Any]) -> None:
    stale_entries = [
        joins(90_100 + 7 * number, client, f"{client}/g{number}", broker_name="b")
        for client in "xyz"
        for number in range(3)
    ]
    orphaned = 0
    for future in futures(*THREE, *stale_entries, **versions):
        orphaned += any(future.orphans(at) for at in range(95_000, 150_000, 5_000))
        assert len(future.timeline.lifetimes) == 12
    assert orphaned == 20


@pytest.mark.parametrize("detail", [None, "EXPIRED"])
def test_a_broker_reports_a_closed_connection_and_not_of_one_its_scan_finds(
    detail: str | None,
) -> None:
    lost = happens(80_900, "CONSUMER_LOST", "z", broker_name="b", detail=detail)
    for future in futures(*THREE, lost, **V5):
        told = [
            one
            for one in future.passes("x")
            if one.trigger == "woken" and 80_900 < ms(one.begin_us) < 82_500
        ]
        assert bool(told) == (detail is None)


def test_when_the_duplicates_are_gone_so_are_the_orphans() -> None:
    channels = [(client, f"{client}/g{number}") for client in "xyz" for number in range(3)]
    stale_entries = [joins(90_100, *channel, broker_name="b") for channel in channels]
    gone = [happens(140_100, "CONSUMER_LOST", *channel, broker_name="b") for channel in channels]
    for future in futures(*THREE, *stale_entries, *gone, **V5):
        assert future.orphans(165_000) == future.shared(165_000) == 0


def test_a_suspended_member_keeps_its_queues_beside_a_second_owner_until_it_resumes() -> None:
    events = [
        *THREE,
        happens(90_100, "CONSUMER_SUSPEND", "y"),
        happens(100_300, "CONSUMER_LEAVE", "z"),
        happens(150_700, "CONSUMER_RESUME", "y"),
    ]
    for future in futures(*events, **V5):
        kept = future.queues_of("y", 90_000)
        assert future.queues_of("y", 150_600) == kept == ["a3", "b0", "b1"]
        assert future.owners(150_600)["a3"] == ["x", "y"]
        assert future.orphans(150_600) == 2
        assert future.shared(152_000) == future.orphans(152_000) == 0
        assert future.drops("y", 90_100)[0][0] - 150_700 < 500


@pytest.mark.parametrize("versions", [V4, V5], ids=["4.9", "5.3"])
def test_members_that_subscribe_differently_rebalance_for_ever(versions: dict[str, Any]) -> None:
    topics = [*two_brokers(), *two_brokers(name="U")]
    alike = [
        joins(5_100, "x", subscriptions=("T", "U")),
        joins(17_300, "y", subscriptions=("T", "U")),
    ]
    unlike = [joins(5_100, "x", subscriptions=("T", "U")), joins(17_300, "y", subscriptions=("T",))]
    for members, storm in ((alike, False), (unlike, True)):
        for future in futures(*topics, *members, seeds=5, **versions):
            woken = [
                one
                for one in future.passes("x")
                if one.trigger == "woken" and ms(one.begin_us) > 50_000
            ]
            assert (len(woken) >= 12) == storm
            if storm:  # y is counted for U, which it does not read
                assert future.orphans(200_000) == 4


def test_lost_notices_leave_everything_to_the_members_own_passes() -> None:
    unnotified = ClockOptions(exact_times=True, lost_notices=1.0)
    late = []
    for future in futures(
        *THREE, happens(100_300, "CONSUMER_LEAVE", "z"), options=unnotified, **V5
    ):
        late += [at for client in "xy" for at, _ in future.takes(client, 100_300)]
    assert max(late) > 100_300 + 10_000
    assert max(late) < 100_300 + 21_500


def test_a_late_name_server_keeps_its_clients_behind() -> None:
    grown = topic(100_300, 6)
    for options, first in ((EXACT, 100_300), (LATE, 160_300)):
        for future in futures(*THREE, grown, options=options, **V5):
            taken = [at for client in "xyz" for at, queue in future.takes(client, 100_300)]
            assert taken
            assert first <= min(taken)
            assert max(taken) <= first + 51_500


def test_clients_of_two_name_servers_divide_different_queues() -> None:
    split = ClockOptions(exact_times=True, late_share=0.5, late_ms=60_000)
    both = 0
    for future in futures(*THREE, topic(100_300, 6), options=split, **V5):
        both += bool(future.orphans(155_000) or future.shared(155_000))
    assert both >= 10
