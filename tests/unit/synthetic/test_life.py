"""The members of a fleet's groups: possible at every step, and with every habit promised."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.times import DAY_MS
from rebalance_core.replay.history import replay_history
from rebalance_core.strategies import parse_strategy
from rebalance_core.synthetic.days import group_events
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.groups import BY_INSTANCE, ONE_FOR_ALL, FleetGroup, group_of
from tests.unit.synthetic.fleets import Row, history, joined, table

PLAN = FleetPlan(2_000, 2, 3)
Life = list[Row]


@pytest.fixture(scope="module")
def groups() -> list[FleetGroup]:
    return [group_of(PLAN, number) for number in range(PLAN.groups)]


@pytest.fixture(scope="module")
def lives() -> list[Life]:
    return [joined(group_events(PLAN, number)) for number in range(PLAN.groups)]


def live_after_each(life: Life) -> list[tuple[Row, Counter[str]]]:
    """Each event with the client ids in the member list after it; fails on an unknown member."""
    live: set[tuple[str, str]] = set()
    steps = []
    for row in life:
        if row["event_type"] == "REQUEST_MODE":
            continue
        member = (row["client_id"], row["channel_id"])
        if row["event_type"] == "CONSUMER_JOIN":
            assert member not in live
            live.add(member)
        else:
            assert member in live, row
        if row["event_type"] in ("CONSUMER_LEAVE", "CONSUMER_LOST"):
            live.remove(member)
        steps.append((row, Counter(client_id for client_id, _ in live)))
    return steps


def test_events_come_in_order_and_name_live_members_only(lives: list[Life]) -> None:
    for life in lives:
        keys = [(row["event_ms"], row["sequence"]) for row in life]
        assert keys == sorted(set(keys))
        assert PLAN.start_ms <= keys[0][0] <= keys[-1][0] < PLAN.end_ms
        live_after_each(life)


def test_what_was_there_is_observed_and_nothing_else_is(
    lives: list[Life], groups: list[FleetGroup]
) -> None:
    for life, group in zip(lives, groups, strict=True):
        observed = [row for row in life if row.get("detail") == "OBSERVED"]
        assert {row["event_ms"] for row in observed} <= {PLAN.start_ms}
        assert len(observed) == (group.size if group.batch_hour is None else 0)


def test_sizes_follow_zipf(groups: list[FleetGroup]) -> None:
    sizes = sorted(group.size for group in groups)
    share = len(sizes)
    assert 0.65 < sum(2 <= size <= 8 for size in sizes) / share < 0.85
    assert 0.015 < sum(size >= 50 for size in sizes) / share < 0.06
    assert 0.03 < sizes.count(1) / share < 0.1
    assert sizes[-1] <= 300
    # Each octave holds twice as many sizes of 2^-1.9 the weight: 0.54 times the groups.
    octaves = [sum(low <= size < 2 * low for size in sizes) for low in (4, 8, 16, 32)]
    for lower, higher in pairwise(octaves):
        assert 0.35 < higher / lower < 0.75


def test_events_per_group_and_day(lives: list[Life]) -> None:
    changes = sorted(sum(row.get("detail") != "OBSERVED" for row in life) for life in lives)
    per_day = [count / PLAN.days for count in changes]
    assert 24 < sum(per_day) / len(per_day) < 40
    median, top = per_day[len(per_day) // 2], per_day[-len(per_day) // 100]
    assert median < 15
    assert top > 20 * median


def test_every_setting_occurs(groups: list[FleetGroup]) -> None:
    settings = [group.settings for group in groups]
    strategies = Counter(s.strategy.split("(")[0] for s in settings)
    assert set(strategies) == {
        "AVG",
        "AVG_BY_CIRCLE",
        "CONSISTENT_HASH",
        "CONFIG",
        "MACHINE_ROOM",
        "MACHINE_ROOM_NEARBY-AVG",
    }
    assert strategies["AVG"] > len(groups) / 2
    assert {s.consumer_type for s in settings} == {"PUSH", "LITE_PULL", "PULL"}
    assert 0.02 < sum(s.message_model == BROADCASTING for s in settings) / len(settings) < 0.08
    assert {s.consume_from_where for s in settings if s.consume_timestamp_ms} == {
        "CONSUME_FROM_TIMESTAMP"
    }
    assert {s.client_version[0] for s in settings} == {"4", "5"}
    assert {s.rebalance_mode for s in settings} == {"CLIENT", "BROKER", "PROXY"}
    for share in (
        sum(s.ordered for s in settings),
        sum(s.pull_threshold_for_topic > 0 for s in settings),
        sum(not group.has_row for group in groups),
        sum(group.lag_ms is None for group in groups),
        sum(group.batch_hour is not None for group in groups),
    ):
        assert 0 < share < len(groups) / 5


def test_some_groups_pop_and_some_are_behind_proxies(
    lives: list[Life], groups: list[FleetGroup]
) -> None:
    popping = proxied = 0
    for life, group in zip(lives, groups, strict=True):
        modes = [row for row in life if row["event_type"] == "REQUEST_MODE"]
        asked = {row["topic"] for row in modes}
        assert asked in (set(), set(group.settings.subscriptions or ()))
        assert not modes or group.settings.rebalance_mode == "BROKER"
        popping += bool(modes)
        if group.settings.rebalance_mode == "PROXY":
            proxied += 1
            assert not any(row.get("message_model") for row in life)
            assert group.settings.client_version.startswith("5")
    assert popping > 1
    assert proxied > 3


def test_names_of_groups_are_unique_in_a_cluster() -> None:
    plan = FleetPlan(1_500, 1, 5, groups_per_cluster=1_500)
    assert len({group_of(plan, number).name for number in range(1_500)}) == 1_500


def test_every_kind_of_event_occurs(lives: list[Life]) -> None:
    found = Counter((row["event_type"], row.get("detail")) for life in lives for row in life)
    for kind in (
        ("CONSUMER_JOIN", "OBSERVED"),
        ("CONSUMER_JOIN", None),
        ("CONSUMER_LEAVE", None),
        ("CONSUMER_LOST", "CLOSED"),
        ("CONSUMER_LOST", "EXPIRED"),
        ("SUBSCRIBE", None),
        ("UNSUBSCRIBE", None),
        ("CONSUMER_SUSPEND", None),
        ("CONSUMER_RESUME", None),
    ):
        assert found[kind] > 0, kind
    assert found["CONSUMER_LOST", "CLOSED"] > found["CONSUMER_LOST", "EXPIRED"]


def test_members_set_things_of_their_own(lives: list[Life]) -> None:
    joins = [row for life in lives for row in life if row["event_type"] == "CONSUMER_JOIN"]
    own = ("strategy", "subscriptions", "version", "message_model", "consume_from_where")
    for column in own:
        assert 0 < sum(row.get(column) is not None for row in joins) < len(joins) / 5, column


def test_ids_are_new_at_each_start_unless_an_instance_is_named(
    lives: list[Life], groups: list[FleetGroup]
) -> None:
    returned = 0
    for life, group in zip(lives, groups, strict=True):
        channels = defaultdict(set)
        for row in life:
            if row["event_type"] == "CONSUMER_JOIN":
                channels[row["client_id"]].add(row["channel_id"])
        ids = list(channels)
        if group.settings.message_model == BROADCASTING:
            assert all(client_id.endswith("@DEFAULT") for client_id in ids)
        elif group.naming == BY_INSTANCE:
            assert not any("#" in client_id for client_id in ids)
            returned += sum(len(seen) > 1 for seen in channels.values())
        elif group.naming == ONE_FOR_ALL:
            assert len(ids) == 1
        else:
            assert all(client_id.partition("@")[2].count("#") == 1 for client_id in ids)
        stream = group.settings.consumer_type == "LITE_PULL"
        assert all(client_id.endswith("@STREAM") == stream for client_id in ids)
    assert returned > 20


def test_some_client_ids_are_twice_in_the_list(lives: list[Life], groups: list[FleetGroup]) -> None:
    duplicates = half_open = 0
    for life, group in zip(lives, groups, strict=True):
        if group.naming == ONE_FOR_ALL:
            continue
        twice = [max(ids.values(), default=0) > 1 for _, ids in live_after_each(life)]
        duplicates += any(twice)
        half_open += any(twice) and not twice[-1]
    assert 5 < duplicates < 0.1 * len(groups)
    assert half_open > 0


def test_rolling_restarts_replace_everybody_a_few_at_a_time() -> None:
    plan = FleetPlan(200, 1, 3)
    number = next(
        n
        for n in range(200)
        if 4 <= group_of(plan, n).size <= 12 and len(joined(group_events(plan, n))) > 60
    )
    steps = live_after_each(joined(group_events(plan, number)))
    sizes = [sum(ids.values()) for row, ids in steps if row["event_ms"] > plan.start_ms]
    assert min(sizes) > 0.5 * group_of(plan, number).size


def test_rooms_of_clients_are_those_of_the_brokers(
    groups: list[FleetGroup], lives: list[Life]
) -> None:
    checked = 0
    for group, life in zip(groups, lives, strict=True):
        if "NEARBY" in group.settings.strategy:
            resolver = parse_strategy(group.settings.strategy).rooms  # type: ignore[attr-defined]
            rooms = {resolver.client_room(row["client_id"]) for row in life}
            assert rooms <= set(group.cluster.rooms)
            checked += 1
    assert checked > 20


def test_a_replay_knows_every_member_and_settles() -> None:
    plan = FleetPlan(300, 1, 3, groups_per_cluster=100)
    small = [n for n in range(300) if group_of(plan, n).size <= 12][:60]
    statuses: Counter[str] = Counter()
    for number in small:
        replay = replay_history(
            history(plan, number), lambda key: parse_strategy(key[0], version=key[1])
        )
        assert replay.unknown_members == []
        assert replay.epochs
        statuses.update(epoch.status for epoch in replay.epochs)
    assert statuses["SETTLED"] > 0.9 * statuses.total()


def test_a_long_life_comes_day_by_day() -> None:
    plan = FleetPlan(3, 4, 3)
    days = list(group_events(plan, 1))
    assert len(days) == 4
    for day, rows in enumerate(days):
        assert {(row["event_ms"] - plan.start_ms) // DAY_MS for row in rows} <= {day}


def test_texts_of_strategies_parse() -> None:
    plan = FleetPlan(400, 1, 9, groups_per_cluster=100)
    texts = {row.get("strategy") for row in table(plan, "consumer_groups")}
    texts |= {row.get("strategy") for row in table(plan, "cluster_events")}
    assert any(str(text).startswith("CONFIG(") for text in texts)
    for text in texts:
        if text is not None:
            parse_strategy(text)
