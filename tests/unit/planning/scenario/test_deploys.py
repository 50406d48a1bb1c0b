"""Deploys by surge and unavailable, as a Kubernetes Deployment does them."""

from itertools import pairwise
from typing import Any

import pytest

from rebalance_core.planning.scenario.file import parse_scenario
from rebalance_core.planning.scenario.pods import at_once
from tests.unit.planning.scenario.edited_history import edit_history
from tests.unit.planning.scenario.groups import (
    CLUSTER,
    END_MS,
    GROUP,
    Row,
    dump,
    join,
    numbered,
    process,
    scenario,
    topic,
)

PODS = 'kind = "rolling_restart"; group = "g"; at = "+10m"; down = "15s"'
BEGIN_MS = END_MS + 600_000


def deployed(
    text: str, *, members: int = 4, queues: int = 8, **settings: object
) -> tuple[list[tuple[int, str]], list[Row], tuple[str, ...]]:
    """(seconds after the begin, JOIN or LEAVE or LOST) of each new row; the rows; warnings."""
    row = {"cluster": CLUSTER, "consumer_group": GROUP, **settings}
    done = edit_history(scenario(text), dump(members, queues), [row])
    new = [row for row in done.rows if row["event_ms"] > END_MS]
    told = sorted(
        ((row["event_ms"] - BEGIN_MS) // 1000, row["event_type"].removeprefix("CONSUMER_"))
        for row in new
    )
    return told, new, done.warnings


def mistakes_of(text: str) -> list[str]:
    mistakes: list[str] = []
    edit = text.replace("; ", "\n")
    parse_scenario(f'name = "s"\ndescription = "d"\n[[edit]]\n{edit}', "s.toml", mistakes)
    return mistakes


@pytest.mark.parametrize(
    ("surge", "unavailable", "members", "expected"),
    [
        ("25%", "25%", 10, (3, 2)),
        ("25%", "25%", 3, (1, 0)),
        (1, 0, 12, (1, 0)),
        (0, "100%", 5, (0, 5)),
        (0, "10%", 5, (0, 1)),
        (0, 9, 5, (0, 5)),
        ("100%", 0, 5, (5, 0)),
    ],
)
def test_percentages_are_rounded_as_kubernetes_does(
    surge: Any, unavailable: Any, members: int, expected: tuple[int, int]
) -> None:
    assert at_once(surge, unavailable, members) == expected


def test_with_a_surge_members_join_first() -> None:
    told, rows, _ = deployed(f'{PODS}; surge = 1; ready = "5s"; pause = "10s"', members=2)
    assert told == [(15, "JOIN"), (20, "LEAVE"), (45, "JOIN"), (50, "LEAVE")]
    addresses = [row["client_id"].partition("@")[0] for row in rows]
    assert len(set(addresses)) == 4  # two old ones, two that no process had


def test_surge_and_unavailable_together_replace_their_sum() -> None:
    told, _, _ = deployed(f'{PODS}; surge = "25%"; unavailable = "25%"', members=4)
    assert told == [
        (0, "LEAVE"),
        (15, "JOIN"),
        (15, "JOIN"),
        (15, "LEAVE"),
        (15, "LEAVE"),
        (30, "JOIN"),
        (30, "JOIN"),
        (30, "LEAVE"),
    ]


def test_killed_pods_say_nothing() -> None:
    _, rows, _ = deployed(f"{PODS}; unavailable = 1; graceful = false", members=1)
    assert [(row["event_type"], row["detail"]) for row in rows] == [
        ("CONSUMER_LOST", "CLOSED"),
        ("CONSUMER_JOIN", None),
    ]


def test_a_successor_has_the_same_id_at_every_pace() -> None:
    texts = (f"{PODS}; surge = 1", f'{PODS}; unavailable = 2; pause = "1m"')
    joined = [
        {row["client_id"] for row in deployed(text)[1] if row["event_type"] == "CONSUMER_JOIN"}
        for text in texts
    ]
    assert len(joined[0]) == 4
    assert joined[0] == joined[1]


def test_hosts_keep_their_address() -> None:
    _, rows, _ = deployed(f'{PODS}; unavailable = 1; address = "kept"', members=3)
    hosts = [row["client_id"].partition("@")[0] for row in rows]
    assert sorted(set(hosts)) == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]


def test_an_upgrade_joins_as_the_version() -> None:
    _, rows, _ = deployed(f'{PODS}; surge = 1; version = "5.4.0"', members=2)
    assert {row["version"] for row in rows if row["event_type"] == "CONSUMER_JOIN"} == {"5.4.0"}


def test_a_strategy_is_switched_by_pods() -> None:
    text = PODS.replace("rolling_restart", "switch_strategy")
    told, rows, _ = deployed(f'{text}; surge = 1; strategy = "AVG_BY_CIRCLE"', members=2)
    assert told == [(15, "JOIN"), (15, "LEAVE"), (30, "JOIN"), (30, "LEAVE")]
    joins = [row["strategy"] for row in rows if row["event_type"] == "CONSUMER_JOIN"]
    assert joins == ["AVG_BY_CIRCLE"] * 2


@pytest.mark.parametrize(("queues", "is_told"), [(2, True), (3, False)])
def test_surge_pods_that_get_nothing_are_reported(queues: int, is_told: bool) -> None:
    warnings = deployed(f"{PODS}; surge = 1", members=4, queues=queues)[2]
    assert any("get no queue: there are 4 queues for 4 members" in w for w in warnings) is is_told
    assert not deployed(f"{PODS}; unavailable = 1", members=4, queues=queues)[2]


@pytest.mark.parametrize(
    ("pace", "is_told"),
    [
        ("unavailable = 2", True),
        ("unavailable = 1", False),
        ("surge = 2", True),
        ("unavailable = 2; graceful = false", False),
    ],
)
def test_orderly_members_that_stop_together_are_reported(pace: str, is_told: bool) -> None:
    warnings = deployed(f"{PODS}; {pace}", ordered=True)[2]
    assert any("stop within 2 s of each other" in text for text in warnings) is is_told
    assert not deployed(f"{PODS}; {pace}", ordered=False)[2]


@pytest.mark.parametrize(
    ("pace", "expected"),
    [
        ("surge = 0; unavailable = 0", "no member would ever be replaced"),
        ('unavailable = "0%"', "no member would ever be replaced"),
        ('surge = 1; pause = "-5s"', "pause = '-5s'"),
        ("surge = -1", "surge = -1"),
        ('unavailable = "120%"', "unavailable = '120%'"),
        ("surge = 1; percent = 20", "percent excludes surge"),
        ('pause = "5s"', "pause needs surge or unavailable"),
        ('how = "crash"; graceful = false', "graceful excludes how"),
        ('surge = 1; version = "new"', "version = 'new'"),
        ('surge = 1; start = {median = "9s"}', "down excludes start"),
        ('ready = "container"', "ready needs surge or unavailable"),
        ('surge = 1; ready = "-5"', "ready = '-5'"),
        ('surge = 1; workload = "stateful_set"', "surge excludes workload"),
        ('surge = 1; workload = "daemon_set"', "workload = 'daemon_set'"),
        ('surge = 1; grace = "-1s"', "grace = '-1s'"),
    ],
)
def test_what_is_no_pace_is_refused(pace: str, expected: str) -> None:
    (mistake,) = mistakes_of(f"{PODS}; {pace}")
    assert expected in mistake


SPREAD = PODS.replace('down = "15s"', 'start = {median = "15s", spread = "5s"}')


def test_each_pod_starts_in_its_own_time_and_is_reacted_to() -> None:
    told, _, warnings = deployed(f"{SPREAD}; surge = 1", members=4)
    assert [what for _, what in told] == ["JOIN", "LEAVE"] * 4  # one at a time, whatever it takes
    joins = [second for second, what in told if what == "JOIN"]
    between = [later - earlier for earlier, later in pairwise([0, *joins])]
    assert len(set(between)) > 1
    assert not warnings
    # all pods are created at once, and each lets one go
    told, _, _ = deployed(f'{SPREAD}; surge = "100%"', members=4)
    joins, leaves = ([s for s, what in told if what == kind] for kind in ("JOIN", "LEAVE"))
    assert joins == leaves
    assert joins[-1] - joins[0] > 2


def test_without_a_probe_members_stop_before_their_successors_join() -> None:
    told, _, _ = deployed(f'{PODS}; surge = "100%"; ready = "container"', members=3)
    assert told == [*[(1, "LEAVE")] * 3, *[(15, "JOIN")] * 3]


def test_ready_long_before_the_join_and_min_ready_after_it() -> None:
    told, _, _ = deployed(f'{PODS}; surge = 1; ready = "-5s"; min_ready = "2s"', members=2)
    assert told == [(12, "LEAVE"), (15, "JOIN"), (24, "LEAVE"), (27, "JOIN")]


def test_an_unstated_spread_is_said() -> None:
    text = PODS.replace('down = "15s"', 'start = {median = "15s"}')
    (warning,) = deployed(f"{text}; surge = 1")[2]
    assert "start states no spread; 4.3 s is assumed" in warning


def test_a_member_reads_on_until_its_hook_is_over_or_it_is_killed() -> None:
    told, _, _ = deployed(f'{PODS}; unavailable = 1; pre_stop = "20s"', members=1)
    assert told == [(15, "JOIN"), (20, "LEAVE")]
    told, rows, warnings = deployed(
        f'{PODS}; unavailable = 1; pre_stop = "20s"; grace = "10s"', members=1
    )
    assert told == [(10, "LOST"), (15, "JOIN")]
    assert rows[0]["detail"] == "CLOSED"
    assert "killed before it unregisters" in warnings[0]


def test_a_member_is_suspended_before_it_stops() -> None:
    told, rows, _ = deployed(f'{PODS}; unavailable = 1; suspend = "4s"; pre_stop = "3s"', members=1)
    assert told == [(3, "SUSPEND"), (7, "LEAVE"), (15, "JOIN")]
    suspended, left = rows[:2]
    assert suspended["client_id"] == left["client_id"] != rows[2]["client_id"]
    told, _, warnings = deployed(
        f'{PODS}; unavailable = 1; suspend = "9s"; grace = "5s"; graceful = false', members=1
    )
    assert told == [(0, "SUSPEND"), (5, "LOST"), (15, "JOIN")]
    assert warnings == ()
    (warning,) = deployed(f'{PODS}; unavailable = 1; suspend = "30s"', members=1)[2]
    assert "pre_stop and suspend of 30 s is not over when the grace period of 30 s ends" in warning


@pytest.mark.parametrize("consumer_type", ["LITE_PULL", "PULL"])
def test_consumers_without_suspend_are_not_suspended(consumer_type: str) -> None:
    text = f'{PODS}; unavailable = 1; suspend = "4s"'
    told, _, warnings = deployed(text, members=1, consumer_type=consumer_type)
    assert told == [(4, "LEAVE"), (15, "JOIN")]  # the hook takes its time all the same
    (warning,) = warnings
    assert warning.endswith(
        f": g: {consumer_type} consumers have no suspend(), so none is suspended"
    )


@pytest.mark.parametrize(
    ("modes", "of_group", "expected"),
    [
        (("PROXY", "PROXY"), "CLIENT", "so none is suspended"),
        ((None, "PROXY"), "CLIENT", "so these are not suspended"),
        (("CLIENT", None), "PROXY", "so these are not suspended"),
        ((None, None), "CLIENT", None),
    ],
)
def test_members_behind_a_proxy_are_not_suspended(
    modes: tuple[str | None, ...], of_group: str, expected: str | None
) -> None:
    text = f'{PODS}; unavailable = 1; suspend = "4s"'
    clients = [join(END_MS, n, rebalance_mode=mode) for n, mode in enumerate(modes, 1)]
    row = {"cluster": CLUSTER, "consumer_group": GROUP, "rebalance_mode": of_group}
    done = edit_history(scenario(text), numbered([topic(END_MS, 4), *clients]), [row])
    suspended = {r["client_id"] for r in done.rows if r["event_type"] == "CONSUMER_SUSPEND"}
    assert suspended == {
        process(n)["client_id"] for n, mode in enumerate(modes, 1) if (mode or of_group) == "CLIENT"
    }
    warning = f": g: members behind a proxy have no suspend(), {expected}"
    assert [each.endswith(warning) for each in done.warnings] == [True] * (expected is not None)


def test_a_crash_is_no_hook_that_takes_too_long() -> None:
    text = f'{PODS}; unavailable = 1; how = "crash"'
    assert deployed(text, members=1)[2] == ()
    (warning,) = deployed(f'{text}; pre_stop = "30500ms"', members=1)[2]
    assert "pre_stop of 30.5 s is not over when the grace period of 30 s ends" in warning


def test_with_a_surge_the_suspension_follows_the_join() -> None:
    told, _, _ = deployed(f'{PODS}; surge = 1; suspend = "4s"', members=2)
    assert told == [
        (15, "JOIN"),
        (15, "SUSPEND"),
        (19, "LEAVE"),
        (30, "JOIN"),
        (30, "SUSPEND"),
        (34, "LEAVE"),
    ]


def test_hosts_are_suspended_too() -> None:
    text = PODS.replace('down = "15s"', 'down = "15s"; percent = 50; every = "1m"')
    told, _, _ = deployed(f'{text}; suspend = "4s"', members=2)
    assert told == [
        (0, "SUSPEND"),
        (4, "LEAVE"),
        (19, "JOIN"),
        (60, "SUSPEND"),
        (64, "LEAVE"),
        (79, "JOIN"),
    ]


def test_a_switch_at_once_suspends_nobody() -> None:
    text = 'kind = "switch_strategy"; group = "g"; strategy = "AVG"; suspend = "4s"'
    (mistake,) = mistakes_of(text)
    assert "suspend" in mistake
    assert 'needs how = "rolling"' in mistake
    assert mistakes_of(f"{text}; surge = 1") == mistakes_of(f'{text}; how = "rolling"') == []


def test_a_stateful_set_goes_down_from_its_last_ordinal() -> None:
    text = f'{PODS}; workload = "stateful_set"; pre_stop = "5s"'
    told, _, _ = deployed(text, members=3)
    # a pod is created when the one before it with its name has ended
    assert told == [
        (5, "LEAVE"),
        (20, "JOIN"),
        (25, "LEAVE"),
        (40, "JOIN"),
        (45, "LEAVE"),
        (60, "JOIN"),
    ]
    named = [
        row | {"client_id": row["client_id"].replace("10.0.0.", "orders-").replace("-3@", "-12@")}
        if row.get("client_id")
        else row
        for row in dump(3, 8)
    ]
    settings = [{"cluster": CLUSTER, "consumer_group": GROUP, "ordered": False}]
    edited = edit_history(scenario(text), named, settings).rows
    left = [row["client_id"] for row in edited if row["event_type"] == "CONSUMER_LEAVE"]
    assert [client_id.partition("@")[0] for client_id in left] == [
        "orders-12",
        "orders-2",
        "orders-1",
    ]


def test_a_replica_set_gives_up_its_younger_pods_first() -> None:
    rows = dump(6, 8)
    # three joined an hour before the others; among equals the UID decides, which the seed draws
    old = [
        row | {"event_ms": row["event_ms"] - 3_600_000, "detail": None}
        if row.get("client_id", "") and row["client_id"][7] in "246"
        else row
        for row in rows
    ]
    settings = [{"cluster": CLUSTER, "consumer_group": GROUP, "ordered": False}]
    edited = edit_history(scenario(f"{PODS}; unavailable = 1"), old, settings).rows
    left = [row["client_id"][7] for row in edited if row["event_type"] == "CONSUMER_LEAVE"]
    assert set(left[:3]) == {"1", "3", "5"}
    assert set(left[3:]) == {"2", "4", "6"}


def test_a_start_beyond_the_progress_deadline_is_said() -> None:
    text = PODS.replace("15s", "11m")
    (warning,) = deployed(f"{text}; unavailable = 1", members=2)[2]
    assert "no pod joins for 660 s, so Kubernetes reports ProgressDeadlineExceeded" in warning
    assert not deployed(f'{text}; unavailable = 1; progress_deadline = "12m"', members=2)[2]
