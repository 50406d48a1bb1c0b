"""Edits in the middle of a history: recorded events that are no longer true, keys, determinism."""

from itertools import permutations
from random import Random

import pytest

from rebalance_core.model.errors import InputRefused
from rebalance_core.planning.scenario.cluster_life import FIRST_SEQUENCE, entity_of
from rebalance_core.planning.scenario.scenario import group_edits
from rebalance_core.synthetic.fleet import FleetPlan
from tests.unit.planning.scenario.edited_history import edit_history, end_of
from tests.unit.planning.scenario.groups import (
    CLUSTER,
    GROUP,
    Row,
    dump,
    edited,
    event,
    gone,
    join,
    numbered,
    process,
    replayed,
    scenario,
    topic,
)
from tests.unit.synthetic.fleets import table

KINDS = (
    'kind = "add_consumers"; group = "*"; share = 0.4; every = "7s"',
    'kind = "remove_consumers"; group = "*"; share = 0.3; how = "expired"',
    'kind = "rolling_restart"; group = "*"; percent = 30; every = "5m"; down = "3m"',
    'kind = "lose_broker"; broker = "*1"; back_after = "40m"',
    'kind = "scale_queues"; topic = "*"; factor = 2',
    'kind = "new_topic"; name = "N"; queues = 4; subscribed_by = "*"; every = "1s"',
    'kind = "switch_strategy"; group = "*"; strategy = "AVG_BY_CIRCLE"; how = "rolling"',
    'kind = "lose_room"; room = "idc1"; separator = "@"; client_prefixes = "10.1."; '
    'back_after = "10m"',
    'kind = "mixed_subscriptions"; group = "*"; percent = 50; extra = "N"',
)
MINUTE_MS = 60_000


def story() -> list[Row]:
    """One member lives on, one leaves, one is suspended and leaves, one comes back."""
    member = {"consumer_group": GROUP} | process(3)
    return numbered(
        [
            topic(0, 6),
            join(10, 1),
            join(20, 2),
            join(30, 3),
            join(40, 4),
            event(2 * MINUTE_MS, "SUBSCRIBE", topic="U", **member),
            event(3 * MINUTE_MS, "CONSUMER_SUSPEND", **member),
            gone(4 * MINUTE_MS, 3),
            gone(5 * MINUTE_MS, 2, "CONSUMER_LOST"),
            join(6 * MINUTE_MS, 2),
            join(10 * MINUTE_MS, 5),
        ]
    )


def test_events_of_removed_members_are_dropped_up_to_their_recorded_end() -> None:
    everybody = 'kind = "remove_consumers"; at = "-9m"; group = "g"; share = 1'
    rows, _ = edited(story(), everybody)
    assert [row["sequence"] for row in rows if row["sequence"] < 100] == [0, 1, 2, 3, 4, 9, 10]
    assert replayed(rows)["epochs"][-1]["members"] == 2


def test_events_of_restarted_members_happen_to_their_successors() -> None:
    at_once = 'kind = "rolling_restart"; at = "-9m"; group = "g"; percent = 100; down = "5s"'
    rows, _ = edited(story(), at_once)
    ledger = replayed(rows)
    subscribed = next(row for row in rows if row["event_type"] == "SUBSCRIBE")
    assert subscribed["sequence"] == 5
    assert subscribed["client_id"].startswith("10.0.0.3@")
    assert subscribed["client_id"] != process(3)["client_id"]
    assert ledger["epochs"][-1]["members"] == 4
    assert len([row for row in rows if row["sequence"] < 100]) == len(story())


def test_a_member_that_ends_while_it_is_down_does_not_come_back() -> None:
    slow = 'kind = "rolling_restart"; at = "-9m"; group = "g"; percent = 100; down = "1h"'
    rows, _ = edited(story(), slow)
    joins = [
        row["client_id"].partition("@")[0]
        for row in rows
        if row["sequence"] > 100 and row["event_type"] == "CONSUMER_JOIN"
    ]
    assert sorted(joins) == ["10.0.0.1", "10.0.0.4"]
    assert replayed(rows)["epochs"][-1]["members"] == 4


def test_recorded_returns_of_a_broker_that_is_held_down_are_dropped() -> None:
    before = numbered([topic(0, 4), join(1, 1), event(50_000, "BROKER_DOWN", broker_name="a"),
                       event(70_000, "BROKER_UP", broker_name="a"), join(100_000, 2)])  # fmt: skip
    rows, _ = edited(before, 'kind = "lose_broker"; at = "-60s"; broker = "a"; back_after = "50s"')
    assert [(row["event_ms"], row["event_type"]) for row in rows if row["broker_name"]][1:] == [
        (40_000, "BROKER_DOWN"),
        (90_000, "BROKER_UP"),
    ]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.split('"')[1])
def test_any_edit_at_any_time_keeps_a_fleet_sound(kind: str, seed: int) -> None:
    plan = FleetPlan(groups=12, days=1, seed=seed)
    rows, groups = table(plan, "cluster_events"), table(plan, "consumer_groups")
    other = Random(seed).choice(KINDS)
    for at in ("end", "-13h", "-30m"):
        given = scenario(f'at = "{at}"; {kind}', f'at = "{at}"; {other}')
        done = edit_history(given, rows, groups, seed=seed)
        keys = {(row["event_ms"], row["sequence"]) for row in done.rows}
        assert len(keys) == len(done.rows), (seed, at, other)
        live: set[tuple[str, str, str | None]] = set()
        for row in done.rows:
            who = (row["consumer_group"], row["client_id"], row["channel_id"])
            if row["event_type"] == "CONSUMER_JOIN":
                live.add(who)
            elif row["client_id"]:
                assert who in live, (seed, at, other, row)
                if row["event_type"] in ("CONSUMER_LEAVE", "CONSUMER_LOST"):
                    live.remove(who)


def test_the_order_of_rows_and_of_groups_does_not_matter(seed: int) -> None:
    plan = FleetPlan(groups=6, days=1, seed=seed)
    rows = list(table(plan, "cluster_events"))
    given = scenario(*(f'at = "-5h"; {kind}' for kind in KINDS))
    expected = edit_history(given, rows, seed=seed)
    Random(seed).shuffle(rows)
    assert edit_history(given, rows, seed=seed) == expected
    group = next(row["consumer_group"] for row in rows if row.get("consumer_group"))
    own = [row for row in rows if row.get("consumer_group") == group]
    cluster, end_ms = next(iter(end_of(rows).items()))
    alone = group_edits(given, group, own, cluster=cluster, end_ms=end_ms, seed=seed)
    assert alone.rows == [row for row in expected.rows if row["consumer_group"] == group]


def test_seeds_choose_differently() -> None:
    edit = 'kind = "remove_consumers"; group = "g"; count = 1'
    gone_ids = {edited(dump(), edit, seed=s)[0][-1]["client_id"] for s in range(20)}
    assert len(gone_ids) == 4


def test_small_histories_in_every_order() -> None:
    edit = 'kind = "rolling_restart"; group = "g"; percent = 50'
    rows = dump(2, 1)[-4:]
    assert len({str(edited(list(order), edit)) for order in permutations(rows)}) == 1


def test_no_two_groups_of_a_large_cluster_share_their_numbers() -> None:
    entities = {entity_of(f"cg_order_task_{number}") for number in range(100_000)}
    assert len(entities) == 100_000
    assert min(entities) > 0
    assert max(entities) < 1 << 46


def test_what_is_kept_dropped_and_added_is_everything() -> None:
    rows = [row for row in story() if row.get("consumer_group")]
    edit = scenario('kind = "remove_consumers"; at = "-9m"; group = "g"; count = 2')
    done = group_edits(edit, GROUP, rows, cluster=CLUSTER, end_ms=10 * MINUTE_MS)
    keys = sorted(row["sequence"] for row in (*done.kept, *done.dropped))
    assert keys == [row["sequence"] for row in rows]
    assert all(row["sequence"] >= FIRST_SEQUENCE for row in done.added)


def test_sequences_where_scenarios_begin_are_refused() -> None:
    with pytest.raises(InputRefused, match="is not below 2\\^62"):
        edited([join(1, 1) | {"sequence": FIRST_SEQUENCE}])


def test_request_modes_stay_and_newcomers_ask_as_their_model_does() -> None:
    mode = event(
        0, "REQUEST_MODE", consumer_group=GROUP, topic="T", detail="POP(share_queue_num=0)"
    )
    asking = [join(10, number, rebalance_mode="BROKER") for number in (1, 2)]
    before = numbered([topic(0, 6), mode, *asking])
    rows, warnings = edited(before, 'kind = "add_consumers"; group = "g"; count = 1; at = "+1m"')
    assert warnings == ()
    assert [row["detail"] for row in rows if row["event_type"] == "REQUEST_MODE"] == [
        mode["detail"]
    ]
    joins = [row["rebalance_mode"] for row in rows if row["event_type"] == "CONSUMER_JOIN"]
    assert joins == ["BROKER"] * 3
    assert {row["topic"] for row in replayed(rows)["ownership"]} == {"%RETRY%g"}
