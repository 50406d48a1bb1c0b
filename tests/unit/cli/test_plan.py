"""The options of `plan`, and what it prints."""

from pathlib import Path
from typing import Any

import pytest

from rebalance_core.cli.jobs import JOBS, parse_options
from rebalance_core.cli.plan_summary import (
    dry_run_facts,
    plan_facts,
    render_dry_run,
    render_plan,
)
from rebalance_core.cli.planning_options import PlanOptions
from rebalance_core.cli.terminal import RowReport
from rebalance_core.engine.options import RowForecast
from rebalance_core.model.errors import UsageError
from rebalance_core.timing.options import ClockOptions
from tests.tree import TREE

GROW = str(TREE / "rebalance_core/bundled/scenarios/add-consumers.toml")
BREAK = str(TREE / "rebalance_core/bundled/scenarios/lose-broker.toml")
DATA = str(TREE / "tests/recordings/data/join-leave/tables")


def options(*words: str) -> PlanOptions:
    _, read = parse_options(["plan", "--input", DATA, "--output", "o", *words], JOBS)
    assert isinstance(read, PlanOptions)
    return read


def test_without_scenario_and_strategy_it_is_the_recorded_history() -> None:
    variants = options().variants
    assert [(h.name, h.seed) for h in variants.histories] == [("baseline", 0)]
    assert [swept.text for swept in variants.strategies] == ["recorded"]


def test_scenarios_strategies_and_seeds_multiply() -> None:
    words = ("--scenario", GROW, BREAK, "--strategy", "AVG", "--strategy", "STICKY_BALANCED")
    assert len(options(*words, "--seeds", "3").variants) == (1 + 2 * 3) * 2
    again = options("--scenario", GROW, "--scenario", BREAK, "--seed", "7", "--seed", "7")
    assert [h.seed for h in again.variants.histories] == [7, 7, 7]


def test_every_mistake_is_named_at_once(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('name = "w"\ndescription = "d"\n[[edit]]\nkind = "add_consumer"\n')
    baseline = tmp_path / "baseline.toml"
    baseline.write_text('name = "baseline"\ndescription = "d"\n')
    words = [
        "plan",
        "--scenario",
        str(wrong),
        str(tmp_path / "none.toml"),
        "--strategy",
        "AVGG",
        "--strategy",
        "CONSISTENT_HASH(nodes=3)",
        "--seed",
        "x",
        "--seeds",
        "0",
        "--input-format",
        "csvv",
    ]
    with pytest.raises(UsageError) as told:
        parse_options(words, JOBS)
    text = str(told.value)
    for part in (
        f"{wrong}:4:",
        "did you mean add_consumers",
        "none.toml",
        "AVGG",
        "nodes",
        "--seed x",
        "--seeds 0",
        "exclude each other",
        "csvv",
        "--input DIR",
        "--output DIR",
    ):
        assert part in text
    with pytest.raises(UsageError, match="baseline"):
        options("--scenario", str(baseline))


def test_a_dry_run_shows_the_variants() -> None:
    rows = RowReport(RowForecast({}, (), None))
    facts = dry_run_facts(options("--scenario", GROW, "--strategy", "league"), {}, rows)
    assert (facts["variants"], facts["exit_code"]) == (16, 0)
    told = render_dry_run(facts, rows)
    assert "16 variants: 2 histories x 8 strategies" in told
    assert "STICKY_BALANCED (not RocketMQ's)" in told


def figures(scenario: str, strategy: str, **values: Any) -> Any:
    row: dict[str, Any] = {
        "scenario": scenario,
        "strategy": strategy,
        "of_rocketmq": strategy == "AVG",
        "groups": 2,
        "seeds": 1,
        "rebalances": 3,
        "moved": 9,
        "minimum_moves": 6,
        "amplification": 1.5,
        "idle_before": 0,
        "idle_after": 1,
        "orphaned_before": 0,
        "orphaned_after": 0,
        "left_unread": 70,
        "skipped_messages": 4,
        "mean_peak_ratio_before": 1.0,
        "mean_peak_ratio": 1.25,
        "worst_peak_ratio": 1.5,
        "frozen": 0,
        "idle": 1,
        "orphaned": 0,
        "shared": False,
        "pop_queues_after": 0,
        "min_clients_per_queue": None,
        "max_clients_per_queue": None,
        "unreached": None,
        "min_redelivery_s": None,
        "max_redelivery_s": None,
        "cannot_pop": 0,
        "proxy_clients": None,
        "proxy_wait_s": None,
        "proxy_repeat_s": None,
        "orphan_queue_seconds": None,
        "double_queue_seconds": None,
        "read_again": None,
        "convergence_ms_p99": None,
        "start_up_ms_p50": None,
        "start_up_brokers": None,
    }
    return row | values


def test_the_summary_has_a_table_a_scenario_and_states_what_is_left_out() -> None:
    asked = options("--scenario", GROW, "--strategy", "STICKY_BALANCED", "--strategy", "AVG")
    rows = [
        figures(scenario, strategy, moved=9 if strategy == "AVG" else 6)
        for scenario in ("add-consumers", "baseline")
        for strategy in ("AVG", "STICKY_BALANCED")
    ]
    league: list[Any] = [
        {
            "strategy": s,
            "of_rocketmq": s == "AVG",
            "moved": 18,
            "moved_per_rebalance": 3.0,
            "minimum_moves": None,
            "amplification": None,
            "stickiness": 0.5,
            "mean_peak_ratio": 1.1,
            "worst_peak_ratio": 1.5,
            "idle_members": 2,
            "orphaned": 0,
            "caveat": "left out: 2",
        }
        for s in ("AVG", "STICKY_BALANCED")
    ]
    facts = plan_facts(asked, rows, league, {"plan_steps": 8}, 4.0, "spark")
    assert [shown["scenario"] for shown in facts["scenarios"]] == ["baseline", "add-consumers"]
    text = render_plan(facts)
    lines = [line.split() for line in text.splitlines()]
    assert [
        "*",
        "AVG",
        "9",
        "6",
        "1.50",
        "1.00",
        "->",
        "1.25",
        "0",
        "->",
        "1",
        "0",
        "->",
        "0",
        "4",
        "70",
    ] in lines
    assert "STICKY_BALANCED, which RocketMQ lacks, would move 6: 3 fewer" in text
    assert text.index("STICKY_BALANCED (not RocketMQ's)") < text.index("* AVG")
    assert text.startswith("Plan in o: 4 variants (4.0 s on Spark)")
    assert "League: all scenarios together" in text
    assert "  AVG: left out: 2" in text
    told = " ".join(text.partition("moved: ")[2].split())
    for heading in ("minimum", "amplif.", "mean peak ratio", "idle", "orphaned", "left unread"):
        assert f"{heading}: " in told


def test_restarts_of_proxies_have_a_table_of_their_own() -> None:
    asked = options("--scenario", GROW, "--strategy", "AVG")
    costs = {"proxy_clients": 7, "proxy_wait_s": 64.0, "proxy_repeat_s": None}
    rows = [figures("baseline", "AVG"), figures("add-consumers", "AVG", **costs)]
    text = render_plan(plan_facts(asked, rows, [], {}, 4.0, "process"))
    head, line = (one.split() for one in text.splitlines() if "proxies" in one or "up to 64" in one)
    assert head[:5] == ["until", "proxies", "are", "back", "clients"]
    assert line == ["AVG", "7", "up", "to", "64", "s", "-"]


def test_times_say_of_how_many_groups_they_are() -> None:
    def rendered(timed: int) -> str:
        times = {
            "orphan_queue_seconds": 1.0,
            "double_queue_seconds": 1.0,
            "convergence_ms_p99": 3_000,
        }
        row = figures("baseline", "AVG", groups=100, timed=timed, **times)
        asked = options("--strategy", "AVG")
        return render_plan(plan_facts(asked, [row], [], {}, 4.0, "process"))

    assert "times of 19 of 100 groups" in rendered(19)
    assert "times of" not in rendered(100)


def test_times_that_are_unknown_are_not_shown_as_none() -> None:
    known = {"orphan_queue_seconds": 1.0, "double_queue_seconds": 1.0, "convergence_ms_p99": None}
    asked = options("--strategy", "AVG")
    text = render_plan(
        plan_facts(asked, [figures("baseline", "AVG", **known)], [], {}, 4.0, "process")
    )
    (line,) = (one.split() for one in text.splitlines() if one.split()[:3] == ["AVG", "1.0", "1.0"])
    assert line[3:] == ["-", "-"]


def test_a_plan_states_how_long_a_start_takes_and_on_what_that_rests() -> None:
    asked = options("--strategy", "AVG", "--rtt", "2.5")
    rows = [
        figures("baseline", "AVG", start_up_ms_p50=380, start_up_brokers=2),
        figures("add-consumers", "AVG", start_up_ms_p50=5_330, start_up_brokers=177),
    ]
    clock = ClockOptions(rtt_us=asked.rtt)
    facts = plan_facts(asked, rows, [], {}, 4.0, "process", clock=clock)
    assert (facts["start_up"]["brokers"], facts["start_up"]["median_ms"]) == (177, 5_330)
    assert (
        "start() takes about 5.3 s with 177 brokers (default, measured on 2 to 4 brokers, round "
        "trips of 2.5 ms), which a start-up probe has to allow for."
    ) in " ".join(render_plan(facts).split())


def test_where_nothing_is_printed_nothing_is_explained() -> None:
    text = render_plan(plan_facts(options(), [], [], {}, 4.0, "process"))
    assert "peak ratio" not in text


def test_what_is_expected_until_changes_settle_has_a_table_of_its_own() -> None:
    asked = options("--strategy", "STICKY_BALANCED", "--strategy", "AVG")
    timed = {
        "orphan_queue_seconds": 12.34,
        "double_queue_seconds": 3.0,
        "read_again": 1234.4,
        "convergence_ms_p99": 3210,
    }
    rows = [figures("baseline", "AVG", **timed), figures("baseline", "STICKY_BALANCED")]
    text = render_plan(plan_facts(asked, rows, [], {}, 4.0, "process"))
    lines = [line.split() for line in text.splitlines()]
    assert [
        "until",
        "changes",
        "settle",
        "orphan",
        "s",
        "double",
        "s",
        "read",
        "again",
        "settled",
        "after",
    ] in lines
    assert ["AVG", "12.3", "3.0", "1,234", "3.2", "s"] in [
        [word for word in line if word != "*"] for line in lines
    ]
