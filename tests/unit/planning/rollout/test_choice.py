"""Plans beside each other, with figures that the test gives: no future is played."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from rebalance_core.model.errors import InputRefused
from rebalance_core.planning.rollout.choice import (
    Searched,
    costs,
    fronts,
    row_of,
    search_plans,
    staffing,
)
from rebalance_core.planning.rollout.futures import (
    DeployedGroup,
    Figures,
    Rollouts,
    Slice,
    deployed_group,
)
from rebalance_core.planning.rollout.search import Budgets, Prices, RolloutPlan, Search
from rebalance_core.planning.rollout.words import recommendation, texts_of
from rebalance_core.planning.scenario.pods import Pace
from rebalance_core.synthetic.draws import Draws
from tests.unit.replay.histories import history
from tests.unit.timing.futures import joins, two_brokers

PLANS = tuple(RolloutPlan(1, 0, pause_ms=1_000 * number, spread_ms=0) for number in range(16))


def group(members: int = 4) -> DeployedGroup:
    clients = [joins(1_000 + n, f"10.0.0.{n + 1}@1#{n + 1}") for n in range(members)]
    return deployed_group(history(*two_brokers(2), *clients))


def made_up(again: Sequence[float], finish_s: Sequence[float], seeds: range, plan: int) -> Figures:
    """Figures around a plan's own: the same noise for every plan, of mean 0 over 20 seeds."""
    noise = np.array([(seed % 20) - 9.5 for seed in seeds])
    ones = np.ones(len(seeds), np.int64)
    return Figures(
        finish_ms=(1000 * finish_s[plan] * ones).astype(np.int64),
        orphan_ms=3_000 * ones,
        unread_ms=3_000 * ones,
        double_ms=0 * ones,
        read_again_milli=(1000 * (again[plan] + noise)).astype(np.int64),
        late_milli=2_000 * ones,
        moves=4 * len(seeds),
    )


def searched(
    again: Sequence[float],
    finish_s: Sequence[float] = tuple(range(10, 26)),
    budgets: Budgets | None = None,
    prices: Prices | None = None,
    plans: Sequence[RolloutPlan] = PLANS,
) -> tuple[Searched, Counter[int]]:
    """What comes of it, and how many futures of each plan were played."""
    played: Counter[int] = Counter()
    search = Search("restart", "g", budgets or Budgets(), prices)
    rollouts = Rollouts(search, tuple(plans), (group(),))

    def play(pieces: Sequence[Slice]) -> Iterator[Figures]:
        for piece in pieces:
            assert piece.seeds.start == played[piece.plan]
            played[piece.plan] += len(piece.seeds)
            yield made_up(again, finish_s, piece.seeds, piece.plan)

    return search_plans(rollouts, play), played


def test_the_best_and_the_default_are_played_to_the_end_and_the_worst_given_up() -> None:
    again = [100.0 + 10 * plan for plan in range(16)]
    again[7] = 20.0
    found, played = searched(again)
    assert found.chosen == 7
    assert found.kept
    assert played[7] == played[0] == 1_000
    assert played[15] == 80
    assert sum(played.values()) < 16 * 1_000 / 3
    assert [row["futures"] for row in found.rows] == [played[plan] for plan in range(16)]


def test_a_plan_above_the_best_is_stopped_unless_it_is_faster() -> None:
    again = [100.0, 20.0, 60.0, 20.5]
    plans = PLANS[:4]
    found, played = searched(again, [10.0] * 4, plans=plans)
    assert found.chosen == 1
    # three are kept in every round, and one of these lies above the best
    assert dict(played) == {0: 1_000, 1: 1_000, 2: 80, 3: 1_000}
    _, played = searched(again, [10.0, 10.0, 9.9, 10.0], plans=plans)  # a little faster
    assert played[2] == 1_000
    # where the best misses a budget none is stopped
    _, played = searched(again, [10.0] * 4, Budgets(max_read_again=1.0), plans=plans)
    assert played[2] == 1_000


def test_the_front_rests_on_as_many_futures_as_what_is_chosen() -> None:
    # each of them costs more and is faster, so all are on the front
    dearer, faster = [100 * 1.1**n for n in range(16)], [60 * 0.9**n for n in range(16)]
    found, played = searched(dearer, faster)
    assert all(row["on_front"] for row in found.rows)
    assert set(played.values()) == {1_000}
    # the first is better than all others
    found, played = searched(range(100, 116))
    assert sum(count == 1_000 for count in played.values()) < len(PLANS) / 2


def test_the_front_has_what_is_faster_or_costs_less() -> None:
    found, _ = searched([50.0, 40.0, 60.0, 30.0, *[90.0] * 12])
    assert [row["plan"] for row in found.rows if row["on_front"]] == [0, 1, 3]


def test_what_is_hardly_better_beats_nothing() -> None:
    rows = [{"cost": cost, "finish_s_p50": time} for cost, time in ((100, 10), (97, 9.8), (80, 10))]
    assert fronts(rows).tolist() == [False, False, True]
    # nearly as cheap and much faster: the slow plan is not on the front
    rows = [{"cost": cost, "finish_s_p50": time} for cost, time in ((100, 60), (102, 20))]
    assert fronts(rows).tolist() == [False, True]


def test_late_messages_and_those_read_again_are_one_cost() -> None:
    seeds = range(20)
    figures = made_up([10.0], [9.0], seeds, 0)
    staff = staffing([Pace(0, 1, 10_000).turns(3)])
    assert costs(figures, staff, None).mean() == pytest.approx(12.0)  # 10 again, 2 late
    # where a rate is unknown only the time that no client reads is left
    unknown = replace(figures, late_milli=None, unread_ms=figures.orphan_ms + 4_000)
    assert costs(unknown, staff, None).tolist() == [7.0] * 20
    row = row_of(figures, staff, None)
    assert (row["late_messages"], row["late_messages_p99"], row["cost"]) == (
        2.0,
        2.0,
        pytest.approx(12.0),
    )
    assert row["cost_p99"] == pytest.approx(21.5)


def test_a_difference_that_does_not_count_decides_nothing() -> None:
    # 3 % cheaper than the default: it stays
    again = [100.0, 97.0, *[200.0] * 14]
    assert searched(again)[0].chosen == 0
    again[1] = 80.0
    assert searched(again)[0].chosen == 1
    # of two that cost the same and less than the default the faster
    again[2] = 79.0
    assert searched(again, [10.0, 11.0, *[12.0] * 14])[0].chosen == 1


def test_more_time_without_an_owner_than_the_default_is_said() -> None:
    again = [100.0, 20.0, *[200.0] * 14]
    found, _ = searched(again)
    assert "leaves more time without an owner" not in "\n".join(recommendation(found))
    found.rows[1]["no_owner_queue_seconds_p99"] = 9.0
    (said,) = (line for line in recommendation(found) if "leaves more time" in line)
    assert said.endswith("than the default: 9.0 queue-seconds instead of 3.0.")


def test_what_a_recommendation_bears() -> None:
    plans = (RolloutPlan("25%", "25%"), RolloutPlan("100%", 0), RolloutPlan("50%", 0))
    search = Search("restart", "g", Budgets(max_no_owner_s=50.0))
    rollouts = Rollouts(search, plans, (group(),), start_words="as stated")

    def play(pieces: Sequence[Slice]) -> Iterator[Figures]:
        for piece in pieces:
            # all at once is best up to 2 s of spread, and only with a probe
            worse = 0 if (piece.spread_ms or 0) <= 2_000 and piece.ready is None else 200
            yield made_up([100.0, 20.0 + worse, 60.0], [9.0] * 3, piece.seeds, piece.plan)

    found = search_plans(rollouts, play)
    assert found.chosen == 1
    lines = recommendation(found)
    assert (
        "Best plan by start spread: up to 2s maxSurge 100%, maxUnavailable 0; from 5s "
        "maxSurge 50%, maxUnavailable 0." in lines
    )
    assert (
        "It needs a readinessProbe that waits for the consumer's start(): without one 3.0 "
        "queue-seconds have no owner; maxSurge 50%, maxUnavailable 0 is better in that case."
        in lines
    )
    assert any("judged by the figure in parentheses, which 99 %" in line for line in lines)
    assert any(line.endswith("which takes a probe (as stated).") for line in lines)
    strategy = texts_of(found)["strategy.yaml"]
    assert "# Best plan by start spread: up to 2s maxSurge 100%" in strategy


@pytest.mark.parametrize("surge", [1, "25%"])
def test_what_a_suspension_saves_is_said(surge: int | str) -> None:
    plans = (RolloutPlan(2, 1), RolloutPlan(1, 0), RolloutPlan(surge, 0, suspend_ms=5_000))
    found, _ = searched([100.0, 60.0, 20.0], [9.0] * 3, plans=plans)
    lines = recommendation(found)
    assert lines[0].endswith("no pause, suspended for 5s before the stop.")
    (said,) = (line for line in lines if line.startswith("The same with"))
    assert said.startswith(
        "The same with members not suspended: 60 messages are read again (70), at least 2"
    )
    assert {row["suspend_ms"] for row in found.table.to_pylist()} == {0, 5_000}


def test_suspensions_are_stated_as_long_as_the_grace_period_lets_them_be() -> None:
    plans = (
        RolloutPlan(2, 1, graceful=False),
        RolloutPlan(1, 0, graceful=False, suspend_ms=20_000),
        RolloutPlan(1, 0, graceful=False, suspend_ms=40_000),
    )
    (said,) = (
        line
        for line in recommendation(searched([100.0, 20.0, 60.0], [9.0] * 3, plans=plans)[0])
        if line.startswith("The same with")
    )
    assert said.startswith("The same with members suspended for 30s before the stop: 60 messages")
    # all of the grace period is over before the suspension begins
    late = tuple(replace(plan, pre_stop_ms=30_000) for plan in plans[:2])
    lines = recommendation(searched([100.0, 20.0], [9.0] * 2, plans=late)[0])
    assert lines[0].endswith("no pause, killed.")
    assert not any("suspended" in line for line in lines)
    assert any("because their queue has no owner" in line for line in lines)


def test_best_plans_by_spread_are_named_with_the_suspension_that_happens() -> None:
    plans = (RolloutPlan("25%", "25%"), RolloutPlan(1, 0, suspend_ms=40_000))
    rollouts = Rollouts(Search("restart", "g"), plans, (group(),), start_words="as stated")

    def play(pieces: Sequence[Slice]) -> Iterator[Figures]:
        for piece in pieces:
            worse = 0 if (piece.spread_ms or 0) <= 2_000 and piece.ready is None else 200
            yield made_up([100.0, 20.0 + worse], [9.0] * 2, piece.seeds, piece.plan)

    lines = recommendation(search_plans(rollouts, play))
    assert (
        "Best plan by start spread: up to 2s maxSurge 1, maxUnavailable 0, suspended for 30s; from "
        "5s maxSurge 25%, maxUnavailable 25%." in lines
    )


def test_a_suspension_that_ends_in_a_kill_is_said() -> None:
    plans = (RolloutPlan(2, 1), RolloutPlan(1, 0), RolloutPlan(1, 0, suspend_ms=40_000))
    lines = recommendation(searched([100.0, 60.0, 20.0], [9.0] * 3, plans=plans)[0])
    assert lines[0].endswith("no pause, suspended for 30s before the stop, killed.")
    assert (
        "pre_stop and suspend of 40 s is not over when the grace period of 30 s ends, so every pod "
        "is killed before it unregisters." in lines
    )
    assert not any(line.startswith("The same with") for line in lines)


def test_where_a_rate_is_unknown_no_suspensions_are_compared() -> None:
    """The rate of one queue is unknown, the mean of the group's queues is not."""
    plans = (RolloutPlan(1, 0), RolloutPlan(1, 0, suspend_ms=5_000))
    rollouts = Rollouts(Search("restart", "g"), plans, (group(),))

    def play(pieces: Sequence[Slice]) -> Iterator[Figures]:
        for piece in pieces:
            made = made_up([100.0, 60.0], [9.0] * 2, piece.seeds, piece.plan)
            yield replace(made, read_again_milli=None)

    found = search_plans(rollouts, play)
    assert found.rows[1]["late_messages"] is not None
    lines = recommendation(found)
    assert "the number of messages read again is unknown, at least" in lines[1]
    assert not any(line.startswith("The same with") for line in lines)


def test_prices_decide_where_there_are_some() -> None:
    pods = (RolloutPlan(4, 0, down_ms=3_600_000, spread_ms=0), RolloutPlan(0, 1))
    cheap, _ = searched([10.0, 30.0], (1, 2), prices=Prices(copy=1.0, pod_hour=0.1), plans=pods)
    assert cheap.chosen == 0
    dear, _ = searched([10.0, 30.0], (1, 2), prices=Prices(copy=1.0, pod_hour=100.0), plans=pods)
    assert dear.chosen == 1
    assert dear.rows[0]["cost"] == pytest.approx(10 + 4 * 100)


def test_suspended_time_has_the_price_of_time_without_an_owner() -> None:
    plans = (RolloutPlan(1, 0), RolloutPlan(1, 0, suspend_ms=20_000))
    prices = Prices(copy=1.0, no_owner_s=1.0)

    def play(pieces: Sequence[Slice]) -> Iterator[Figures]:
        for piece in pieces:
            made = made_up([100.0, 60.0], [9.0] * 2, piece.seeds, piece.plan)
            yield replace(made, unread_ms=made.orphan_ms + 80_000 * piece.plan)

    rollouts = Rollouts(Search("restart", "g", prices=prices), plans, (group(),))
    found = search_plans(rollouts, play)
    assert [row["cost"] for row in found.rows] == [pytest.approx(103), pytest.approx(143)]
    assert found.chosen == 0
    # the budget of time without an owner is another matter
    rollouts = replace(rollouts, search=replace(rollouts.search, budgets=Budgets(max_no_owner_s=5)))
    assert [row["within_budget"] for row in search_plans(rollouts, play).rows] == [True, True]


def test_what_misses_a_budget_is_not_chosen() -> None:
    found, _ = searched([20.0, *[40.0] * 15], [100.0, *[10.0] * 15], Budgets(finish_within=20_000))
    assert found.chosen == 1
    assert [row["within_budget"] for row in found.rows] == [False, *[True] * 15]


def test_an_impossible_budget_gets_a_sentence() -> None:
    budgets = Budgets(max_read_again=5.0, finish_within=60_000)
    found, _ = searched([100.0, 80.0, *[90.0] * 14], budgets=budgets)
    assert not found.kept
    assert found.chosen == 1
    text = "\n".join(recommendation(found))
    assert "NO PLAN KEEPS THE BUDGETS" in text
    assert (
        "max_read_again = 5: no plan keeps it; the nearest (surge 1, unavailable 0, pause 1s, "
        "random) reaches 89.5 messages read again." in text
    )
    assert "finish_within" not in text


def test_budgets_that_do_not_go_together_get_another() -> None:
    budgets = Budgets(max_read_again=50.0, finish_within=15_000)
    found, _ = searched([100.0, 30.0, *[100.0] * 14], [10.0, 90.0, *[10.0] * 14], budgets)
    (sentence,) = (line for line in recommendation(found) if "no plan meets all of them" in line)
    assert "Some plan meets each single budget" in sentence


def test_no_budget_of_copies_where_their_number_is_unknown() -> None:
    search = Search("restart", "g", Budgets(max_read_again=5.0))
    rollouts = Rollouts(search, PLANS[:2], (group(),))

    def play(pieces: Sequence[Slice]) -> Iterator[Figures]:
        for piece in pieces:
            yield replace(
                made_up([1, 1], [1, 1], piece.seeds, piece.plan),
                read_again_milli=None,
                late_milli=None,
            )

    with pytest.raises(InputRefused, match="needs the rate of every queue"):
        search_plans(rollouts, play)


def test_who_is_there_meanwhile() -> None:
    surge, down = Pace(2, 0, 10_000, 5_000).turns(4), Pace(0, 1, 10_000).turns(3)
    assert staffing([surge]).peak == 6
    assert staffing([surge]).fewest == 4
    # twelve pods that start in their own time are created at once, and take turns as members
    drawn = Pace(12, 0, 15_000, spread_ms=4_000).turns(12, Draws(0, "starts"))
    assert staffing([drawn]).peak_pods == 24
    assert staffing([drawn]).peak < 20
    assert staffing([Pace(3, 3, 15_000).turns(12)]).peak_pods == 15
    assert staffing([surge]).more_pod_ms == 4 * 15_000
    assert (staffing([down]).peak, staffing([down]).fewest) == (3, 2)
    assert staffing([surge, down]).fewest == 2
