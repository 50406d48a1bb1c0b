"""Tables of a plan out of a few rows: owners, loads, before and after."""

import random
from typing import Any

import pyarrow as pa

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.contracts.planning import PLAN_STEPS, PLAN_SUMMARY, QUEUE_RATES
from rebalance_core.process.plan_summary import (
    SoundSteps,
    last_rates,
    owners,
    peak_rates,
    plan_league,
    plan_summary,
    scenario_rows,
)

Row = dict[str, Any]


def interval(
    queue_id: int, client_id: str | None, begin: int, end: int | None, **other: Any
) -> Row:
    return {
        "cluster": "c",
        "consumer_group": "g",
        "topic": "T",
        "broker_name": "a",
        "queue_id": queue_id,
        "client_id": client_id,
        "from_epoch": begin,
        "from_ms": 10 * begin,
        "to_ms": None if end is None else 10 * end,
    } | other


def held(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist(list(rows), LEDGER_TABLES["ownership"].arrow_schema())


def found_owners(*args: Any) -> dict[int, tuple[list[str], list[str]]]:
    return {
        row["queue_id"]: (row["owners_before"], row["owners_after"])
        for row in owners(*args).to_pylist()
    }


HELD = held(
    interval(0, "y", 0, None),
    interval(0, "x", 0, 3),
    interval(1, "x", 0, 2),
    interval(1, None, 2, None),
    interval(2, "z", 3, None),
    interval(3, "x", 1, 2),
    interval(4, "y", 2, None),
    interval(4, "x", 0, None),
)


def test_owners_before_are_those_of_the_last_instant_before_the_first_edit() -> None:
    assert found_owners(HELD, {"c": 20}) == {
        0: (["x", "y"], ["y"]),
        1: (["x"], []),
        2: ([], ["z"]),
        3: (["x"], []),  # it ends as the edit begins
        4: (["x"], ["x", "y"]),
    }


def test_owners_of_many_queues(seed: int) -> None:
    rng = random.Random(seed)
    rows = []
    for begin in (rng.randrange(5) for _ in range(1_000)):
        place = {"topic": rng.choice("TUV"), "consumer_group": rng.choice("ghijk")}
        client_id, end = rng.choice(("x", "y", "z", None)), rng.choice((begin + 1, None))
        rows.append(interval(rng.randrange(20), client_id, begin, end, **place))
    expected: dict[tuple[str, str, int], tuple[set[str], set[str]]] = {}
    for row in rows:
        lasts = row["to_ms"] is None or row["to_ms"] >= 20
        if (row["from_ms"] < 20 and lasts) or row["to_ms"] is None:
            key = (row["consumer_group"], row["topic"], row["queue_id"])
            before, after = expected.setdefault(key, (set(), set()))
            if row["client_id"] is not None:
                before |= {row["client_id"]} if row["from_ms"] < 20 and lasts else set()
                after |= {row["client_id"]} if row["to_ms"] is None else set()
    found = {
        (row["consumer_group"], row["topic"], row["queue_id"]): (
            row["owners_before"],
            row["owners_after"],
        )
        for row in owners(held(*rows), {"c": 20}).to_pylist()
    }
    assert found == {key: (sorted(a), sorted(b)) for key, (a, b) in expected.items()}


def test_without_an_edit_owners_before_are_those_of_the_first_epoch() -> None:
    assert found_owners(HELD, {"other": 20})[0] == (["x", "y"], ["y"])
    assert 3 not in found_owners(HELD, {})


def test_owners_are_of_the_groups_that_are_wanted() -> None:
    rows = pa.concat_tables([HELD, held(interval(9, "x", 0, None, consumer_group="h"))])
    assert found_owners(rows, {}, {("c", "h"), ("d", "g")}) == {9: (["x"], ["x"])}
    assert found_owners(rows, {}, set()) == {}


def rate(queue_id: int, from_ms: int, messages: float) -> Row:
    return {
        "cluster": "c", "topic": "T", "broker_name": "a", "queue_id": queue_id,
        "from_ms": from_ms, "messages_per_second": messages,
    }  # fmt: skip


def test_the_busiest_member_has_the_last_rates_of_what_it_holds_at_the_end() -> None:
    rates = [rate(0, 5, 1.5), rate(0, 1, 100.0), rate(2, 0, 4.0), rate(4, 0, 3.0), rate(1, 0, 50.0)]
    last = last_rates(pa.Table.from_pylist(rates, QUEUE_RATES.arrow_schema()))
    busiest = peak_rates(HELD, last).to_pylist()  # y: 1.5 + 3.0, z: 4.0, x: 3.0
    assert [row["peak_messages_per_second"] for row in busiest] == [4.5]
    assert peak_rates(held(interval(7, "x", 0, None)), last).num_rows == 0


def step(epoch: int, **figures: Any) -> Row:
    row: Row = {
        "cluster": "c", "consumer_group": "g", "scenario": "s", "strategy": "AVG",
        "of_rocketmq": True, "seed": 0, "epoch": epoch, "change_ms": epoch, "causes": [],
        "status": "SETTLED", "counted": True, "members": 2, "queues": 8, "moved": 1,
        "voluntary_moves": 1, "minimum_moves": 1, "amplification": 1.0, "stickiness": 0.5,
        "max_queues": 4, "min_queues": 4, "peak_ratio": 1.0, "idle_members": 0, "orphaned": 0,
        "shared": 0,
    }  # fmt: skip
    return row | figures


def summary_of(*rows: Row, starts: pa.Table | None = None) -> Row:
    [found] = plan_summary(
        pa.Table.from_pylist(list(rows), PLAN_STEPS.arrow_schema()), starts
    ).to_pylist()
    return dict(found)


def test_before_is_the_last_step_not_counted_and_after_the_last_of_all() -> None:
    rows = [step(3, members=7), step(0, counted=False), step(1, counted=False, members=5, moved=9),
            step(2, members=6)]  # fmt: skip
    found = summary_of(*rows)
    assert (found["members_before"], found["members_after"]) == (5, 7)
    assert (found["rebalances"], found["moved"], found["minimum_moves"]) == (2, 2, 2)
    assert (found["amplification"], found["frozen"], found["caveat"]) == (1.0, False, None)
    assert found["read_again"] is found["peak_messages_per_second"] is None


def test_a_group_that_comes_with_the_scenario_has_no_owner_before() -> None:
    found = summary_of(step(0), step(1))
    before = [found[f"{name}_before"] for name in ("members", "peak_queues", "idle", "orphaned")]
    assert (before, found["peak_ratio_before"]) == ([0, 0, 0, 0], None)


def test_a_group_in_which_nothing_counts_moved_nothing() -> None:
    found = summary_of(step(0, counted=False), step(1, counted=False))
    assert (found["rebalances"], found["moved"], found["minimum_moves"]) == (0, 0, 0)
    assert (found["amplification"], found["stickiness"]) == (None, None)


def test_why_amplification_means_nothing() -> None:
    uneven, orphaned = step(1, minimum_moves=None), step(2, orphaned=1)
    frozen = step(3, status="FROZEN")
    empty = step(4, status="EMPTY", members=0, minimum_moves=None, orphaned=8)
    told = {
        names: summary_of(step(0, counted=False), *rows)["caveat"]
        for names, rows in {
            "empty": [empty],
            "orphaned": [orphaned],
            "uneven": [uneven, orphaned],
            "frozen": [uneven, orphaned, frozen],
            "frozen once": [frozen, empty],
        }.items()
    }
    assert told["empty"] is None
    assert told["orphaned"] == "queues without an owner"
    assert told["uneven"] == "members broadcast or subscribe differently"
    assert told["frozen"] == told["frozen once"] == "frozen: members keep their queues"
    last = summary_of(step(0), step(1, counted=False, status="FROZEN"))
    assert (last["frozen"], last["caveat"]) == (True, told["frozen"])


def test_nothing_planned_is_no_row() -> None:
    summary = PLAN_SUMMARY.arrow_schema().empty_table()
    sound = SoundSteps()
    sound.add(PLAN_STEPS.arrow_schema().empty_table())
    assert plan_league(summary, sound).num_rows == 0
    assert scenario_rows(summary) == []
