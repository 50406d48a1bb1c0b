"""Policies beside each other: price, front, budgets, least regret."""

from typing import Any

import numpy as np

from rebalance_core.planning.autoscale.closed_loop import FIGURES, Question, Replayed
from rebalance_core.planning.autoscale.policy import Policy
from rebalance_core.planning.autoscale.recorded_replicas import Recorded
from rebalance_core.planning.autoscale.scaled_group import ScaledGroup
from rebalance_core.planning.autoscale.summary import Judgement, summary_rows
from tests.unit.planning.autoscale.groups import MEMBER, even, steady

POLICIES = [Policy(name, "fixed", replicas=2) for name in ("cheap", "between", "sure", "bad")]
QUESTION = Question(range(2))
LIKELY_FIGURES = ([10.0, 14.0, 30.0, 31.0], [9_000.0, 2_000.0, 0.0, 9_500.0])
HIGH_FIGURES = ([10.0, 15.0, 31.0, 33.0], [90_000.0, 30_000.0, 0.0, 99_000.0])


def replayed(pod_hours: list[float], late: list[float]) -> Replayed:
    figures = {name: np.zeros((len(pod_hours), 2)) for name in FIGURES}
    figures["pod_hours"] = np.array([pod_hours, pod_hours]).T
    figures["late_messages"] = np.array([late, np.array(late) + 2]).T
    return Replayed(figures, [], [], 0)


def rows(judgement: Judgement, *, wide: bool = False) -> list[Any]:
    worlds = ("likely", "low", "high") if wide else ("likely",)
    rates = even([1.0])
    scaled = ScaledGroup(steady(), dict.fromkeys(worlds, rates), dict.fromkeys(worlds, MEMBER))
    of = {"likely": LIKELY_FIGURES, "low": LIKELY_FIGURES, "high": HIGH_FIGURES}
    results = {(0, world): replayed(*of[world]) for world in worlds}
    return summary_rows([scaled], results, POLICIES, QUESTION, judgement)


def chosen(found: list[Any]) -> set[str]:
    return {row["policy"] for row in found if row["chosen"]}


def test_the_cheapest_by_price_is_chosen_and_the_front_has_no_worse_one() -> None:
    found = rows(Judgement(pod_hour=1.0, late=0.001))
    assert [round(row["price"], 6) for row in found] == [19.001, 16.001, 30.001, 40.501]
    assert chosen(found) == {"between"}
    assert [row["on_front"] for row in found] == [True, True, True, False]
    assert [round(row["regret"], 6) for row in found] == [3.0, 0.0, 14.0, 24.5]
    assert found[0]["late_messages_p99"] == 9_002.0
    assert (found[0]["from_ms"], found[0]["to_ms"] - found[0]["from_ms"]) == (
        1_800_000_000_000,
        60_000,
    )


def test_budgets_come_before_the_price() -> None:
    found = rows(Judgement(max_late=100.0))
    assert chosen(found) == {"sure"}
    assert [row["within_budget"] for row in found] == [False, False, True, False]
    # no policy keeps both: the least regret of all, and no claim
    none = rows(Judgement(max_late=100.0, max_pod_hours=20.0))
    assert chosen(none) == {"between"}
    assert not any(row["within_budget"] for row in none)


def test_the_least_largest_regret_over_the_worlds() -> None:
    found = rows(Judgement(pod_hour=1.0, late=0.001), wide=True)
    # likely: 0 for between, 14 for sure; high: 45 - 31 = 14 for between, 0 for sure
    assert {row["world"] for row in found if row["chosen"]} == {"likely", "low", "high"}
    worst = {
        name: max(row["regret"] for row in found if row["policy"] == name)
        for name in ("cheap", "between", "sure")
    }
    assert chosen(found) == {min(worst, key=lambda name: worst[name])}


def test_recorded_replicas_change_nothing_of_the_choice() -> None:
    # "ten" regrets 0 and 8, "fourteen" 4 and 0; beside the recorded 5 pod hours of the first world
    # these would be 5 and 8, 9 and 0, which would make "ten" the choice
    policies = [Policy(name, "fixed", replicas=2) for name in ("ten", "fourteen")]
    worlds = {"likely": [10.0, 14.0, 5.0], "high": [30.0, 22.0, 30.0]}
    rates = even([1.0])
    found = dict[bool, list[Any]]()
    for with_recorded in (False, True):
        scaled = ScaledGroup(
            steady(),
            dict.fromkeys(worlds, rates),
            dict.fromkeys(worlds, MEMBER),
            recorded=Recorded(((0, 2),)) if with_recorded else None,
        )
        results = {
            (number, world): replayed(hours[: 2 + with_recorded], [0.0] * (2 + with_recorded))
            for number in range(2)
            for world, hours in worlds.items()
        }
        groups = [scaled, scaled]  # and both together
        found[with_recorded] = summary_rows(groups, results, policies, QUESTION, Judgement())
    others = [row for row in found[True] if row["policy"] != "recorded"]
    assert others == found[False]
    assert chosen(others) == {"fourteen"}
    assert all(row["on_front"] == (row["regret"] == 0) for row in others)
    recorded = [row for row in found[True] if row["policy"] == "recorded"]
    assert [round(row["regret"], 6) for row in recorded] == [-5.0, 8.0] * 2 + [-10.0, 16.0]
    assert [row["on_front"] for row in recorded] == [True, False] * 3
    assert not any(row["chosen"] for row in recorded)


def test_a_group_that_is_unknown_has_its_reason_and_no_figure() -> None:
    scaled = ScaledGroup(steady(), {}, {}, "no rate")
    found = summary_rows([scaled], {}, POLICIES, QUESTION, Judgement())
    assert {row["reason"] for row in found} == {"no rate"}
    assert all(row.get("pod_hours") is None and not row["chosen"] for row in found)
