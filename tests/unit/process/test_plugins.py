"""An own strategy that divides as AVG does is AVG, wherever a strategy is asked."""

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import rebalance_core
from rebalance_core import MessageQueue
from rebalance_core.cli.main import main
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
from tests.recordings.tables import DATA
from tests.unit.kernels.fleets import replay_rows
from tests.unit.kernels.random_groups import groups
from tests.unit.timing.futures import rows_of
from tests.unit.timing.test_vectorized_equals_reference import OPTIONS, VERSIONS, awake, quietly

pytestmark = pytest.mark.usefixtures("registered_plugins")

GREY = "com.acme.GreyStrategy"
FOLDER = DATA / "join-leave" / "tables"
ALLOWED = ("--allow-plugins", "tests.plugins")
NAMED = ("--set", f"strategies.{GREY}=tests.plugins:OwnAverage", *ALLOWED)
THREE = ["10.0.0.1@1#1", "10.0.0.2@2#2", "10.0.0.3@3#3"]
TOPIC = {"orders": {"broker-a": 5, "broker-b": 3}}


def rows(tables: Any) -> Any:
    """Rows by table, without the texts of strategies."""
    found = {}
    for name, table in dict(tables).items():
        kept = [dict(row) for row in table.to_pylist()]
        for row in kept:
            row.pop("strategy", None)
        found[name] = sorted(kept, key=repr)
    return found


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
    by_name = {row["queue_id"]: row["client_id"] for row in
               rebalance_core.simulate(rebalance_core.sketch(TOPIC, THREE, NamesMore()))
               .ownership.to_pylist() if row["topic"] == "orders"}  # fmt: skip
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
    assert f"custom code, asked with mqAll 8, cidAll 3: it gives this queue to {THREE[1]}" in told


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


# Named in a configuration: from a file of a client to a verdict.


def renamed(folder: Path, name: str) -> Path:
    """A recording whose clients, their logs and dumps say, divide by an own class."""
    found = folder / "collection"
    copytree(DATA / "broker-loss-4.9" / "collection", found)
    (found / "consumer_groups.jsonl").unlink()
    for path in found.rglob("*"):
        if path.name.startswith("rocketmq_client.log"):
            text = gzip.decompress(path.read_bytes())
            new = f"allocateMessageQueueStrategyName={name}".encode()
            path.write_bytes(
                gzip.compress(text.replace(b"allocateMessageQueueStrategyName=AVG", new))
            )
        elif "consumerStatus" in str(path) and path.is_file():
            text = path.read_bytes()
            was = b"org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely"
            path.write_bytes(text.replace(was, GREY.encode()))
    return found


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return renamed(tmp_path_factory.mktemp("renamed"), "GREY")


def test_a_class_that_nobody_named_is_unknown_with_a_hint(collection: Path) -> None:
    audit = rebalance_core.audit_collection(collection)
    verdicts = {row["consumer_group"]: row["verdict"] for row in audit.group_verdicts.to_pylist()}
    assert verdicts["GID_trade"] == "UNKNOWN"
    assert 'name it in the configuration: [strategies] "GREY" =' in " ".join(audit.text.split())


def test_a_class_that_is_named_is_compared_like_any_other(collection: Path, tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text(
        f'[strategies]\n"{GREY}" = "tests.plugins:OwnAverage"\nGREY = "tests.plugins:OwnAverage"\n'
    )
    audit = rebalance_core.audit_collection(collection, config=config, allow_plugins=["tests"])
    original = rebalance_core.audit_collection(DATA / "broker-loss-4.9" / "collection")
    assert rows({"verdicts": audit.group_verdicts}) == rows({"verdicts": original.group_verdicts})
    rules = [sorted(one.findings["rule_id"].to_pylist()) for one in (audit, original)]
    assert rules[0] == rules[1]
    assert set(audit.memberships["strategy"].to_pylist()) == {GREY}


def test_a_named_class_that_throws_is_told_with_its_reason(collection: Path) -> None:
    rebalance_core.register_strategy("GREY", Crowd())
    audit = rebalance_core.audit_collection(collection)
    (finding,) = [r for r in audit.findings.to_pylist() if r["rule_id"] == "FROZEN_GROUP"]
    assert "GREY throws ValueError: three are a crowd" in finding["summary"]


class Crowd(OwnAverage):
    """Three of the recording are too many; the check when it is named has other ids."""

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if len(client_ids) == 3 and client_ids[0].startswith("172."):
            raise ValueError("three are a crowd")
        return super().allocate(client_id, queues, client_ids)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def simulate(*words: str) -> tuple[int, str]:
        code = main(None, ["simulate", "--input", str(FOLDER), "--run-on", "process",
                           "--output", str(tmp_path / "out"), *words])  # fmt: skip
        assert (tmp_path / "out").exists() == (code == 0)
        return code, capsys.readouterr().err

    return simulate


def test_an_option_may_name_what_the_settings_name(run: Any) -> None:
    assert run(*NAMED, "--strategy", GREY)[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--strategy", GREY), "name a custom strategy in [strategies] of the configuration"),
        (("--set", "strategies.A=acme"), "strategies: A = 'acme': expected module:attribute"),
        (
            ("--set", "strategies.A=no_such:It", "--allow-plugins", "no_such"),
            "no_such cannot be imported (ModuleNotFoundError",
        ),
        (("--set", "strategies.A=no_such:It"), "allow it: --allow-plugins no_such"),
        (("--allow-plugins", "os"), "--allow-plugins os: a part of Python itself"),
        (("--allow-plugins", "./acme"), "--allow-plugins ./acme: expected the name of a Python"),
        (("--set", "strategies.A=3"), "--set: strategies.A = 3: expected module:attribute"),
        (("--set", "strategies=3"), "strategies = 3: is a section, not a setting"),
        (
            ("--set", "strategies.AVG=tests.plugins:Sticky", *ALLOWED),
            "AVG is a name of RocketMQ or of plans",
        ),
        (("--set", "strategis.A=x:y"), "did you mean strategies"),
        (("--set", "hash_functions.h=tests.plugins:Sticky", *ALLOWED), "has no (key)"),
        (("--set", "room_resolvers.r=tests.plugins:Sticky", *ALLOWED), "has no broker_room"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(
    run: Any, words: tuple[str, ...], said: str
) -> None:
    code, told = run(*words)
    assert code == 2
    assert said in told
    assert "simulating" not in told


def test_all_mistakes_are_told_at_once(run: Any) -> None:
    code, told = run("--set", "strategies.A=acme", "--set", "strategies.B=no_such:It")
    assert code == 2
    assert "strategies: A" in told
    assert "strategies: B" in told
