"""What a plan computes, and what each history has of a group's rows."""

import pickle

import pytest

from rebalance_core.planning.known_strategies import LEAGUE_STRATEGIES
from rebalance_core.planning.variants import (
    BASELINE,
    NEVER_MS,
    RECORDED,
    EditsByHistory,
    History,
    SweptStrategy,
    first_edit_ms,
    idle_switches,
    read_strategies,
    variants_of,
)
from tests.unit.planning.scenario.groups import CLUSTER, END_MS, GROUP, dump, scenario

GROW = scenario('kind = "add_consumers"; at = "+10m"; group = "g*"; count = 1')
BREAK = scenario(
    'kind = "lose_broker"; at = "-1s"; broker = "a"',
    'kind = "scale_queues"; topic = "*"; factor = 2; cluster = "other"',
)


def strategies(*texts: str) -> tuple[SweptStrategy, ...]:
    mistakes: list[str] = []
    found = read_strategies(texts, mistakes)
    assert mistakes == []
    return found


def test_no_strategy_keeps_the_recorded_ones_and_the_league_is_whole() -> None:
    assert [swept.text for swept in strategies()] == [RECORDED]
    league = strategies("league", "AVG", " recorded ")
    assert len(league) == len(LEAGUE_STRATEGIES) + 1
    assert [swept.text for swept in league if not swept.of_rocketmq] == [
        "STICKY_BALANCED",
        "CONSISTENT_HASH_BOUNDED(epsilon=0.25, virtual_nodes=10)",
    ]


def test_every_wrong_strategy_is_named() -> None:
    mistakes: list[str] = []
    read_strategies(["AVGG", "AVG", "CONSISTENT_HASH(virtual_nodes=many)"], mistakes)
    assert len(mistakes) == 2
    assert "AVG" in mistakes[0]
    assert "virtual_nodes" in mistakes[1]


def test_the_baseline_is_there_once_and_scenarios_under_every_seed() -> None:
    variants = variants_of([GROW], strategies("AVG", "STICKY_BALANCED"), (4, 5))
    assert [(h.name, h.seed) for h in variants.histories] == [(BASELINE, 4), ("s", 4), ("s", 5)]
    assert len(variants) == 6
    assert variants.of_rocketmq() == [(0, "AVG")]
    assert [number for number, _ in variants.hypothetical()] == [1]


@pytest.mark.parametrize(
    ("history", "cluster", "expected"),
    [
        (History(None, 0), CLUSTER, None),
        (History(GROW, 0), CLUSTER, END_MS + 600_000),
        (History(BREAK, 0), CLUSTER, END_MS - 1_000),
        (History(BREAK, 0), "other", END_MS - 1_000),
        (History(scenario('kind = "lose_broker"; broker = "a"; cluster = "x"'), 0), "c", NEVER_MS),
    ],
)
def test_the_state_before_ends_with_the_first_edit(
    history: History, cluster: str, expected: int | None
) -> None:
    assert first_edit_ms(history, cluster, END_MS) == expected


def test_only_what_an_edit_concerns_is_touched_and_edits_travel() -> None:
    histories = (History(None, 0), History(GROW, 0), History(BREAK, 0))
    edits = pickle.loads(pickle.dumps(EditsByHistory(histories, {CLUSTER: END_MS})))
    touched = [
        [edits.touches(number, CLUSTER, group) for group in ("g", "other", None)]
        for number in range(3)
    ]
    assert touched == [[False] * 3, [True, False, False], [False, False, True]]
    rows = [row for row in dump() if row.get("consumer_group")]
    grown = edits.edited(1, CLUSTER, GROUP, rows, None)
    assert (len(grown.kept), [row["event_type"] for row in grown.added]) == (4, ["CONSUMER_JOIN"])
    assert grown == edits.edited(1, CLUSTER, GROUP, list(reversed(rows)), None)


def test_a_switch_that_every_strategy_replaces_is_reported() -> None:
    switch = scenario('kind = "switch_strategy"; group = "*"; strategy = "AVG_BY_CIRCLE"')
    assert list(idle_switches(variants_of([switch], strategies(), (0,)))) == []
    [warning] = idle_switches(variants_of([switch], strategies("AVG"), (0, 1)))
    assert "recorded" in warning


def test_pop_is_a_strategy_of_its_own_that_replaces_request_modes() -> None:
    found = strategies("AVG", "POP( share_queue_num = -1 )", "POP(share_queue_num=-1)")
    assert [(swept.text, swept.of_rocketmq) for swept in found] == [
        ("AVG", True),
        ("POP(share_queue_num=-1)", True),
    ]
    switch = scenario('kind = "switch_request_mode"; group = "g"; mode = "POP"')
    variants = variants_of([switch], found, (0,))
    assert variants.of_rocketmq() == [(0, "AVG")]
    assert [(number, mode.share_queue_num) for number, mode in variants.popped()] == [(1, -1)]
    [warning] = idle_switches(variants)
    assert "switch_request_mode has no effect with --strategy POP" in warning
    assert list(idle_switches(variants_of([switch], found[:1], (0,)))) == []
