"""Files of a search: what they ask, and every mistake in them; the plans that they come to."""

import tomllib
from dataclasses import replace

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.planning.rollout.search import (
    Budgets,
    Prices,
    RolloutPlan,
    Search,
    parse_search,
    read_search,
)
from rebalance_core.planning.scenario.file import parse_scenario
from rebalance_core.planning.scenario.pods import Ready

ASKED = 'change = "restart"\ngroups = "g"\n'


def test_a_whole_file() -> None:
    text = (
        'change = "switch-strategy=CONSISTENT_HASH(virtual_nodes=20)"\ngroups = "order-*"\n'
        "[budgets]\nmax_read_again = 5\nmax_no_owner_s = 1.5\nmax_double_s = 0\nmin_members = 3\n"
        'finish_within = "5m"\n[prices]\ncopy = 0.1\npod_hour = 2\n'
        '[plans]\nsurge = [1, "50%"]\nunavailable = 0\npause = ["0s", "30s"]\ndown = "15s"\n'
    )
    assert parse_search(text, "s.toml") == Search(
        "switch-strategy=CONSISTENT_HASH(virtual_nodes=20)",
        "order-*",
        Budgets(5.0, 1.5, 0.0, 300_000, 3),
        Prices(0.1, 0.0, 2.0),
        surge=(1, "50%"),
        unavailable=(0,),
        pause=(0, 30_000),
        down=15_000,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('groups = "g"', "s.toml:1: change is missing"),
        ('change = "restart"', "s.toml:1: groups is missing"),
        ('change = "restar"\ngroups = "g"', "did you mean restart?"),
        ('change = "upgrade="\ngroups = "g"', "s.toml:1: change = 'upgrade='"),
        ('change = "switch-strategy=AVGG"\ngroups = "g"', "did you mean AVG"),
        (f'{ASKED}[plans]\npause = "-5s"', "s.toml:4: pause = '-5s'"),
        (
            f"{ASKED}[plans]\nsurge = 0\nunavailable = 0",
            "surge and unavailable are both 0",
        ),
        (f'{ASKED}[plans]\nsurge = [0, "0%"]\nunavailable = "0%"', "no member would ever"),
        (f"{ASKED}[budgets]\nmax_readagain = 1", "did you mean max_read_again?"),
        (f"{ASKED}[budgets]\nmax_no_owner_s = -1", "expected a number from 0 up"),
        (
            f'{ASKED}[plans]\nstart = {{median = "15s", spread = "-1s"}}',
            "s.toml:4: start = {'median': '15s', 'spread': '-1s'}: spread = '-1s': expected a dur",
        ),
        (f'{ASKED}[plans]\nstart = {{spread = "1s"}}', "median is missing"),
        (f'{ASKED}[plans]\nstart = "15s"', 'expected a table such as {median = "15s", spread'),
        (f'{ASKED}[plans]\nstart = {{median = "0s", spread = "1s"}}', "a spread requires a median"),
        (f'{ASKED}[plans]\nready = "joined"', "s.toml:4: ready = 'joined': expected \"join\","),
        (
            f'{ASKED}[plans]\ndown = "9s"\nstart = {{median = "9s"}}',
            "s.toml:4: down excludes start",
        ),
        (f'{ASKED}[plans]\nworkload = "stateful_set"\nsurge = 1', "s.toml:5: surge excludes workl"),
        (f"{ASKED}[prices]\ncopy = nan", "expected a number from 0 up"),
        (f"{ASKED}budgets = 3", "budgets must be a table"),
        ("change = ", "s.toml: not TOML"),
    ],
)
def test_mistakes_are_reported_with_their_lines(text: str, expected: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_search(text, "s.toml")
    assert expected in str(error.value)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"none\.toml"):
        read_search("none.toml")


def test_plans_that_do_the_same_are_one() -> None:
    search = Search("restart", "g", surge=(0, 1, "25%"), unavailable=(0, 1), pause=(0, 5_000))
    ids = [plan.plan_id for plan in search.plans([4])]
    assert ids[0] == "surge 25%, unavailable 25%, pause 0s, replica_set"
    # 25 % of 4 is 1, as surge and as unavailable: of each pace the first is kept
    assert ids[1:] == [
        "surge 0, unavailable 1, pause 0s, replica_set",
        "surge 0, unavailable 1, pause 5s, replica_set",
        "surge 1, unavailable 0, pause 0s, replica_set",
        "surge 1, unavailable 0, pause 5s, replica_set",
        "surge 1, unavailable 1, pause 5s, replica_set",
    ]
    assert len(search.plans([4, 8])) == 1 + 10


def test_without_a_second_step_no_pause_and_no_order_matter() -> None:
    search = Search("restart", "g", surge=(4,), unavailable=(0,), order=("random", "last_first"))
    assert len(search.plans([4])) == 2  # and the default


@pytest.mark.parametrize("change", ["restart", "upgrade=5.4.0", "switch-strategy=AVG_BY_CIRCLE"])
def test_the_scenario_that_is_written_is_the_one_that_was_searched(change: str) -> None:
    plan = RolloutPlan(
        surge="25%",
        unavailable=1,
        pause_ms=2_500,
        order="last_first",
        down_ms=15_000,
        ready=-1_000,
        graceful=False,
        address="kept",
        spread_ms=3_500,
        min_ready_ms=2_000,
        pre_stop_ms=500,
        grace_ms=20_000,
        suspend_ms=4_000,
    )
    mistakes: list[str] = []
    read = parse_scenario(plan.as_toml(change, "order-*"), "rollout.toml", mistakes)
    assert mistakes == []
    assert read.edits == plan.scenario(change, "order-*").edits
    assert tomllib.loads(plan.as_toml(change, "order-*"))["name"] == "rollout"


def test_the_strategy_block_states_what_kubernetes_cannot() -> None:
    assert RolloutPlan("25%", 0, min_ready_ms=4_100, spread_ms=0).as_strategy() == (
        "# Assumed: every pod joins 10s after its creation.\n"
        "# Assumed: a pod is Ready once its consumer has joined the group, which takes a probe.\n"
        "minReadySeconds: 5\n"
        "strategy:\n  type: RollingUpdate\n  rollingUpdate:\n"
        "    maxSurge: 25%\n    maxUnavailable: 0\n"
        "template:\n  spec:\n    terminationGracePeriodSeconds: 30\n"
        "    containers:\n    - name: consumer  # yours\n      readinessProbe:\n"
        "        # must fail until the consumer's start() has returned; the application\n"
        "        # writes this file then, as RocketMQ's client has no probe of its own\n"
        "        exec: {command: [test, -f, /tmp/consumer-started]}\n        periodSeconds: 1\n"
    )
    paused = RolloutPlan(1, 0, 5_000, "first_first", spread_ms=2_000, ready=-3_000).as_strategy()
    assert [line for line in paused.splitlines() if line.startswith("#")] == [
        "# Assumed: a pod joins 10s after its creation (median), one in six more than 2s later.",
        "# Assumed: a pod is Ready 3s before its consumer joins the group.",
        "# minReadySeconds includes the pause of 5s",
        "# so old pods stop after the pause; the simulation stops them before it",
        "# Kubernetes chooses which pods stop; the simulation: first_first",
    ]


def test_times_of_suspension_are_plans_and_the_hook_suspends() -> None:
    search = parse_search(
        f'{ASKED}[plans]\nsurge = 1\nunavailable = 0\npause = "0s"\nsuspend = ["0s", "5s"]\n'
        'pre_stop = "2s"',
        "s.toml",
    )
    first, *plans = search.plans([4])
    assert first.suspend_ms == 0  # Kubernetes suspends nothing
    assert [plan.plan_id for plan in plans] == [
        "surge 1, unavailable 0, pause 0s, replica_set",
        "surge 1, unavailable 0, pause 0s, suspend 5s, replica_set",
    ]
    text = plans[1].as_strategy()
    assert "# Assumed: each consumer is suspended for 5s before it stops, by its preStop" in text
    assert 'exec: {command: [sh, -c, "sleep 2; touch /tmp/consumer-suspend; sleep 5"]}' in text
    assert "readinessProbe:" in text
    unprobed = replace(plans[1], ready="container", pre_stop_ms=0).as_strategy()
    assert 'sh, -c, "touch /tmp/consumer-suspend; sleep 5"]' in unprobed
    assert "readinessProbe:" not in unprobed
    assert "preStop" not in plans[0].as_strategy()


def test_a_hook_beyond_the_grace_period_kills_and_the_plan_says_so() -> None:
    search = parse_search(
        f'{ASKED}[plans]\nsurge = 1\nunavailable = 0\npause = "0s"\n'
        'suspend = ["0s", "20s", "30s", "40s"]\npre_stop = "5s"\ngrace = "25s"',
        "s.toml",
    )
    pace = "surge 1, unavailable 0, pause 0s"
    plans = search.plans([4])[1:]
    assert [plan.plan_id for plan in plans] == [
        f"{pace}, replica_set",
        f"{pace}, suspend 20s, replica_set, killed",  # the longer ones do the same
    ]
    assert "grace period" not in plans[0].as_strategy()
    text = plans[1].as_strategy()
    assert "# Assumed: each consumer is suspended for 20s before it is killed, by its preSt" in text
    assert (
        "# pre_stop and suspend of 25 s is not over when the grace period of 25 s ends, so every "
        "pod is killed before it unregisters\n" in text
    )


@pytest.mark.parametrize("ready", [0, "container"])
def test_a_suspension_after_the_grace_period_never_happens(ready: Ready) -> None:
    plan = RolloutPlan(1, 0, pre_stop_ms=30_000, suspend_ms=5_000, ready=ready)
    assert plan.plan_id == "surge 1, unavailable 0, pause 0s, random, killed"
    text = plan.as_strategy()
    assert "preStop:" not in text
    assert "is suspended" not in text
    assert ("readinessProbe:" in text) == (ready == 0)
    assert "# pre_stop and suspend of 35 s is not over when the grace period of 30 s ends" in text


def test_the_hook_has_fractions_of_seconds() -> None:
    plan = RolloutPlan(1, 0, pre_stop_ms=1_500, suspend_ms=400)
    assert '"sleep 1.5; touch /tmp/consumer-suspend; sleep 0.4"' in plan.as_strategy()
    assert (
        '"touch /tmp/consumer-suspend; sleep 29.5"'
        in RolloutPlan(1, 0, suspend_ms=29_500).as_strategy()
    )


def test_without_a_probe_none_is_asked_for() -> None:
    text = RolloutPlan(1, 0, ready="container", grace_ms=45_000).as_strategy()
    assert "# Assumed: there is no readinessProbe, so a pod is Ready 1s after its creation." in text
    assert "readinessProbe:" not in text
    assert "terminationGracePeriodSeconds: 45" in text


def test_a_stateful_set_has_no_surge() -> None:
    search = parse_search(f'{ASKED}[plans]\nworkload = "stateful_set"\npause = "0s"', "s.toml")
    plans = search.plans([4])
    # 25 % of 4 is 1, as is the default
    assert [(plan.surge, plan.unavailable) for plan in plans] == [(0, 1), (0, "50%"), (0, "100%")]
    assert {plan.order for plan in plans} == {"ordinal"}
    assert "updateStrategy:\n  type: RollingUpdate\n  rollingUpdate:\n    maxUnavailable: 1" in (
        plans[0].as_strategy()
    )
