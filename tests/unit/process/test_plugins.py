"""An own strategy that divides as AVG does is AVG, wherever a strategy is asked."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import rebalance_core
from rebalance_core.engine.options import REFERENCE, VECTORIZED
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.model.errors import UsageError
from rebalance_core.process.propagate import propagate
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.reference.play import play_seeds_one_by_one
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.vectorized import play_seeds, reason_of
from rebalance_core.timing.vectorized.reference_only import REGULAR
from tests.plugins import NamesMore, OwnAverage, Sticky, ThrowsForThree
from tests.unit.kernels.fleets import replay_rows
from tests.unit.kernels.random_groups import groups
from tests.unit.process.own_strategy import FOLDER, GREY, rows
from tests.unit.timing.futures import rows_of
from tests.unit.timing.test_vectorized_equals_reference import OPTIONS, VERSIONS, awake, quietly

pytestmark = pytest.mark.usefixtures("registered_plugins")
THREE = ["10.0.0.1@1#1", "10.0.0.2@2#2", "10.0.0.3@3#3"]
TOPIC = {"orders": {"broker-a": 5, "broker-b": 3}}


def of_clients(history: GroupHistory) -> GroupHistory:
    """The group, whose members divide by themselves: brokers know no own strategy."""
    events = tuple(replace(event, rebalance_mode=None) for event in history.events)
    its = replace(history.settings, rebalance_mode="CLIENT")
    return replace(history, settings=its, events=events)


def test_the_replay_of_random_groups(seed: int) -> None:
    rebalance_core.register_strategy(GREY, OwnAverage())
    settled = 0

    def check(history: GroupHistory) -> None:
        nonlocal settled
        one, other = (replay_rows([of_clients(history)], override=text) for text in (GREY, "AVG"))
        for row in one["memberships"]:
            assert row["strategy"] == GREY
            row["strategy"] = "AVG"
        assert one == other
        settled += sum(row["status"] == "SETTLED" for row in one["epochs"])

    quietly(check, 100, seed, groups(traits=("twins", "own models", "masters")) | groups())
    assert settled > 60


def test_futures_of_random_groups_in_loop_and_batch(seed: int) -> None:
    rebalance_core.register_strategy(GREY, OwnAverage())
    regular = 0

    def check(history: GroupHistory, options: ClockOptions, client: str, broker: str) -> None:
        nonlocal regular
        its = awake(of_clients(history), 0, client, broker, mixed=False)
        scripts = [build_timeline(by(its, text), options) for text in (GREY, "AVG")]
        assert reason_of(scripts[0]) == reason_of(scripts[1])
        seeds = np.arange(3) * 977
        loops = [rows_of(play_seeds_one_by_one(one, seeds.tolist(), options)) for one in scripts]
        assert loops[0] == loops[1]
        if reason_of(scripts[0]) == REGULAR:
            regular += len(loops[0]) > 0
            assert rows_of(play_seeds(scripts[0], seeds, options)) == loops[0]

    quietly(check, 30, seed, groups(), OPTIONS, VERSIONS, VERSIONS)
    assert regular > 3


def by(history: GroupHistory, text: str) -> GroupHistory:
    """The group under one strategy."""
    events = tuple(replace(event, strategy=None) for event in history.events)
    return replace(history, settings=replace(history.settings, strategy=text), events=events)


@pytest.mark.parametrize("strategy", [NamesMore(), ThrowsForThree()], ids=["more", "throws"])
def test_futures_of_a_strategy_that_errs(seed: int, strategy: OwnAverage) -> None:
    """The batch leaves queues that are not there to the loop."""
    rebalance_core.register_strategy(GREY, strategy)
    played = 0

    def check(history: GroupHistory, options: ClockOptions) -> None:
        nonlocal played
        its = by(awake(of_clients(history), 0, "5.3", "5.3", mixed=False), GREY)
        script = build_timeline(its, options)
        found = rows_of(play_seeds(script, np.arange(2), options))
        assert found == rows_of(play_seeds_one_by_one(script, [0, 1], options))
        played += len(found) > 0

    quietly(check, 10, seed, groups(), st.just(ClockOptions()))
    assert played > 2


@pytest.mark.parametrize("engine", [VECTORIZED, REFERENCE])
def test_a_ledger_has_the_rows_of_avg_and_the_given_name(engine: str) -> None:
    own = rebalance_core.simulate(FOLDER, strategy=OwnAverage(), engine=engine)
    assert set(own.memberships["strategy"].to_pylist()) == {"OWN_AVG"}
    assert rows(own) == rows(rebalance_core.simulate(FOLDER, strategy="AVG"))


def test_both_engines_show_what_throws_and_what_is_not_there() -> None:
    for strategy in (ThrowsForThree(), NamesMore(), Sticky()):
        tables = rebalance_core.sketch(TOPIC, ["c1", "c2", "c3"], strategy)
        one, other = (rebalance_core.simulate(tables, engine=e) for e in (VECTORIZED, REFERENCE))
        assert rows(one) == rows(other)
    by_name = {
        row["queue_id"]: row["client_id"]
        for row in rebalance_core.simulate(
            rebalance_core.sketch(TOPIC, THREE, NamesMore())
        ).ownership.to_pylist()
        if row["topic"] == "orders"
    }
    assert by_name[77] == THREE[0]
    frozen = rebalance_core.simulate(
        rebalance_core.sketch(TOPIC, ["c1", "c2", "c3"], ThrowsForThree())
    )
    assert set(frozen.epochs["status"].to_pylist()) == {"FROZEN"}
    answer = rebalance_core.explain_queue(
        frozen, "group", "orders/broker-a/0", int(frozen.epochs["from_ms"][-1].as_py())
    )
    assert "THROWS_FOR_THREE throws (ValueError: three are a crowd)" in str(answer)


def test_what_if_and_plan_take_objects() -> None:
    change = {"add_consumers": 1}
    own, avg = (
        rebalance_core.what_if(THREE, TOPIC, strategy, change) for strategy in (OwnAverage(), "AVG")
    )
    assert own.moved == avg.moved
    assert own.moves_range == avg.moves_range
    tables = rebalance_core.sketch(TOPIC, 3)
    planned = rebalance_core.plan(
        tables, "add-consumers", [OwnAverage(), "AVG"], set="plan.futures=2"
    )
    for table in ("plan_steps", "plan_summary"):
        by_text: Any = {"OWN_AVG": [], "AVG": []}
        for row in planned[table].to_pylist():
            by_text[row.pop("strategy")].append(row)
        assert by_text["OWN_AVG"] == by_text["AVG"]
        assert by_text["AVG"]
    with pytest.raises(
        UsageError, match="two strategies have the name OWN_AVG; give each its own name"
    ):
        rebalance_core.plan(tables, (), [OwnAverage(), OwnAverage()])
    with pytest.raises(UsageError, match=r"has no allocate|expected a strategy text"):
        rebalance_core.what_if(THREE, TOPIC, object(), change)


def test_a_pass_and_an_explanation() -> None:
    passes = [
        rebalance_core.rebalance_pass(
            THREE[1], queues={"orders": [("a", n) for n in range(8)]}, members=THREE, strategy=one
        ).facts()
        for one in (OwnAverage(), "AVG")
    ]
    assert passes[0]["added"] == passes[1]["added"] != {}
    ledger = rebalance_core.simulate(rebalance_core.sketch(TOPIC, THREE, OwnAverage()))
    at = int(ledger.epochs["from_ms"][-1].as_py())
    told = str(rebalance_core.explain_queue(ledger, "group", "orders/broker-a/4", at))
    assert "OWN_AVG assigns it to this client" in told
    assert (
        f"custom code, called with mqAll 8, cidAll 3: it assigns this queue to {THREE[1]}" in told
    )


def test_futures_in_several_processes() -> None:
    rebalance_core.register_strategy(GREY, "tests.plugins:OwnAverage")
    tables = dict(rebalance_core.read_tables(FOLDER))
    for name in ("cluster_events", "consumer_groups"):
        table = tables[name]
        texts = [GREY if text else None for text in table["strategy"].to_pylist()]
        place = table.column_names.index("strategy")
        tables[name] = table.set_column(place, "strategy", pa.array(texts, pa.string()))
    options = PropagationOptions(seeds=4)
    found = propagate(tables, options, processes=2)
    assert rows(found) == rows(propagate(rebalance_core.read_tables(FOLDER), options))
