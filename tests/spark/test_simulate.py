"""The distributed simulation against the plain replay, on every recording at once."""

import json
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks import opening_state
from rebalance_core.checks.input_tables import ArrowTables, read_input_tables
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES, SIMULATED_TABLES
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.engine.routing import interests_of
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.process import simulate as in_process
from rebalance_core.process.generate import generate_and_write
from rebalance_core.process.simulate import simulate_and_write
from rebalance_core.process.stage_rows import StageRows
from rebalance_core.spark import InputTables, Ledger, simulate
from rebalance_core.spark.checks import check_and_count
from rebalance_core.spark.opening_state import with_state
from rebalance_core.spark.runtime import SparkRuntime
from rebalance_core.synthetic.fleet import FleetPlan
from tests.recordings.tables import (
    DATA,
    RECORDINGS,
    Row,
    Tables,
    derived_tables,
    ingested_recording,
    ledger_of,
    replayed,
)
from tests.spark.frames import assert_same_rows, frame_of
from tests.unit.process.cut_inputs import cuts_of, since, until

DAY = FleetPlan(groups=30, days=1, seed=24)
POP = "pop"
"""The recording whose members pop; the request modes of its topics are its own."""


def tables_of(recording: str) -> Tables:
    if recording != POP:
        return derived_tables(recording)
    return {name: list(ingested()[name]) for name in INPUT_TABLES}


def ingested() -> Tables:
    return ingested_recording(POP).tables


def write_fleet(folder: Path) -> None:
    """Write all recordings as one fleet: each is a cluster of its own name; rows in any order."""
    tables = {name: tables_of(name) for name in (*RECORDINGS, POP)}
    for table in INPUT_TABLES:
        lines = [
            json.dumps(row | {"cluster": name})
            for name, found in tables.items()
            for row in found.get(table, ())
        ]
        (folder / f"{table}.jsonl").write_text("\n".join(reversed(lines)) + "\n")


@pytest.fixture(scope="module")
def fleet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> InputTables:
    """`write_fleet`, in five partitions."""
    folder = tmp_path_factory.mktemp("fleet")
    write_fleet(folder)
    inputs = InputTables.read(spark, str(folder))
    return inputs_of({name: frame.repartition(5) for name, frame in inputs.tables().items()})


@pytest.fixture(scope="module")
def ledger(fleet: InputTables) -> Ledger:
    return simulate(fleet)


@pytest.fixture(scope="module")
def expected() -> Tables:
    return replayed_fleet()


def replayed_fleet() -> Tables:
    """Return the ledger of `write_fleet` by the plain replay."""
    ledgers = {name: replayed(name) for name in RECORDINGS} | {POP: ledger_of(ingested())}
    return {
        table: [row | {"cluster": name} for name, one in ledgers.items() for row in one[table]]
        for table in SIMULATED_TABLES
    }


@pytest.mark.parametrize("table", SIMULATED_TABLES)
def test_a_fleet_gives_the_rows_of_the_replay(
    spark: SparkSession, ledger: Ledger, expected: Tables, table: str
) -> None:
    found = getattr(ledger, table)
    # all of them have rows where somebody pops; what is popped is that recording's alone
    clusters = {row["cluster"] for row in expected[table]}
    assert clusters >= {POP}
    assert table.startswith("pop_") == (clusters == {POP})
    ddl = LEDGER_TABLES[table].plain_ddl
    assert_same_rows(found, frame_of(spark, expected[table], ddl))


def test_the_reference_engine_knows_request_modes(spark: SparkSession, tmp_path: Path) -> None:
    tables = ingested()
    for name in INPUT_TABLES:
        lines = map(json.dumps, tables[name])
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    options = SimulationOptions(engine="reference")
    ledger = simulate(InputTables.read(spark, str(tmp_path)), options)
    expected = ledger_of(tables)
    for table in SIMULATED_TABLES:
        assert expected[table], table
        ddl = LEDGER_TABLES[table].plain_ddl
        assert_same_rows(getattr(ledger, table), frame_of(spark, expected[table], ddl))
    assert ledger.replayed is not None
    groups = [row | {"reason": "REFERENCE"} for row in expected["epochs"] if row["epoch"] == 0]
    ddl = "cluster STRING, consumer_group STRING, reason STRING"
    assert_same_rows(ledger.replayed, frame_of(spark, groups, ddl))


def inputs_of(frames: dict[str, DataFrame]) -> InputTables:
    return InputTables(
        frames["cluster_events"],
        frames.get("consumer_groups"),
        frames.get("queue_offsets"),
        frames.get("committed_offsets"),
    )


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated day."""
    folder = tmp_path_factory.mktemp("day")
    generate_and_write(DAY, folder)
    return folder


def test_both_engines_give_the_same_day(spark: SparkSession, day: Path, tmp_path: Path) -> None:
    """The kernels on Spark, the replay in this process."""
    inputs = InputTables.read(spark, str(day))
    options = SimulationOptions(partitions=3)
    before = kept(spark)
    ours = simulate_and_write(
        inputs, str(tmp_path / "vectorized"), options, runtime=SparkRuntime(spark)
    )
    assert kept(spark) == before
    options = SimulationOptions(engine="reference")
    theirs = simulate_and_write(read_input_tables(str(day)), tmp_path / "reference", options)
    assert ours.tables == theirs.tables
    assert ours.tables.keys() == LEDGER_TABLES.keys()
    assert ours.facts["groups"] == DAY.groups
    assert min(table.rows for name, table in ours.tables.items() if name != "rejected") > 0
    assert ours.replay_reasons == {}  # suspended, mixed and doubled members among them


def test_chosen_tables_are_those_of_a_whole_run(
    spark: SparkSession, day: Path, tmp_path: Path
) -> None:
    inputs, options = InputTables.read(spark, str(day)), SimulationOptions(tables=["pull_starts"])
    here = simulate_and_write(read_input_tables(str(day)), tmp_path / "here")
    ours = simulate_and_write(inputs, f"{tmp_path}/ours", options, runtime=SparkRuntime(spark))
    assert ours.tables == {name: here.tables[name] for name in ("pull_starts", "rejected")}
    with simulate(inputs, tables=["diffs"]) as ledger:
        assert list(ledger.frames()) == ["diffs", "rejected"]
        assert ledger.diffs.count() == here.tables["diffs"].rows
        with pytest.raises(UsageError, match=r"epochs is not among .*: diffs, rejected"):
            ledger.epochs.count()


def test_jobs_are_described(spark: SparkSession, tmp_path: Path) -> None:
    inputs = InputTables.read(spark, str(DATA / "join-leave" / "tables"))
    context = spark.sparkContext
    context.setJobGroup("mine", "the caller's")
    options = SimulationOptions(tables=["diffs", "epochs"])
    runtime = SparkRuntime(spark)
    written = simulate_and_write(inputs, str(tmp_path / "out"), options, runtime=runtime)
    jobs = context._jsc.sc().statusStore().jobsList(None)
    texts = [str(jobs.apply(number).description()) for number in range(jobs.size())]
    check = "rebalance-core: check cluster_events, consumer_groups, queue_offsets, 1 more"
    write = "rebalance-core: simulate 1 work unit, write epochs, diffs, rejected"
    rows = sum(counts.rows for counts in written.inputs.values())
    assert runtime.stages == [
        StageRows(check.removeprefix("rebalance-core: "), rows, rows),
        StageRows(
            write.removeprefix("rebalance-core: "),
            rows,
            sum(table.rows for table in written.tables.values()),
        ),
    ]
    assert list(runtime.each([Path("a"), Path("b")], str)) == ["a", "b"]
    assert runtime.stages[2:] == [StageRows("play 2 pieces", 0, 0)]
    plans = spark._jsparkSession.sharedState().statusStore().executionsList()
    observed = [plans.apply(number).physicalPlanDescription() for number in range(plans.size())]
    for text in (check, write):
        assert any(
            "CollectMetrics" in plan and f"{text}, [sum(rows_in" in plan for plan in observed
        )
    assert {f"Some({text})" for text in (check, write)} <= set(texts)
    assert {str(jobs.apply(number).jobGroup()) for number in range(jobs.size())} >= {"Some(mine)"}
    assert context.getLocalProperty("spark.job.description") == "the caller's"
    assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    for name in ("spark.job.description", "spark.jobGroup.id"):
        context.setLocalProperty(name, None)  # type: ignore[arg-type]  # none


def test_a_giant_group_is_divided_by_its_queues(
    spark: SparkSession, day: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_process, "GIANT_CELLS", 2_000)
    options = SimulationOptions(partitions=3)
    inputs = InputTables.read(spark, str(day))
    checked = check_and_count(inputs, options.max_queue_nums, (interests_of,))
    with closing(checked):
        assert in_process.ledger_tasks(SparkRuntime(spark), checked, options)[1].giants
    ours = simulate_and_write(inputs, str(tmp_path / "parts"), options, runtime=SparkRuntime(spark))
    whole = simulate_and_write(read_input_tables(str(day)), tmp_path / "whole")
    assert ours == whole


def test_columns_are_the_contract_s(ledger: Ledger) -> None:
    assert {name: tuple(frame.columns) for name, frame in ledger.frames().items()} == {
        name: table.column_names for name, table in LEDGER_TABLES.items()
    }


def test_options_reach_the_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """Group, times and strategy: as in a process, where tests/unit/process says what they mean."""
    folder = str(DATA / "join-leave" / "tables")
    times = [row["from_ms"] for row in replayed("join-leave")["epochs"]]
    options = SimulationOptions(
        group="order-*", strategy="AVG_BY_CIRCLE", from_ms=times[2], to_ms=times[4]
    )
    inputs = InputTables.read(spark, folder)
    ours = simulate_and_write(inputs, str(tmp_path / "spark"), options, runtime=SparkRuntime(spark))
    theirs = simulate_and_write(read_input_tables(folder), tmp_path / "here", options)
    assert ours.tables == theirs.tables
    for name, column, values in (
        ("memberships", "strategy", ["AVG_BY_CIRCLE"]),
        *((table, "epoch", [2, 3]) for table in ("epochs", "group_metrics", "diffs")),
    ):
        found = spark.read.parquet(str(tmp_path / "spark" / name)).select(column).distinct()
        assert sorted(row[0] for row in found.collect()) == values, name
    with pytest.raises(InputRefused, match=r"order_\* matches no group with consumer events"):
        simulate(inputs, SimulationOptions(group="order_*"))


def test_an_unknown_engine_or_strategy_is_refused_before_anything_runs(
    spark: SparkSession,
) -> None:
    inputs = InputTables.read(spark, str(DATA / "join-leave" / "tables"))
    with pytest.raises(UsageError, match="unknown engine"):
        simulate(inputs, SimulationOptions(engine="warp"))
    with pytest.raises(UsageError):
        simulate(inputs, SimulationOptions(strategy="AVERAGE"))


def kept(spark: SparkSession) -> int:
    """How many frames are kept."""
    size: int = spark.sparkContext._jsc.getPersistentRDDs().size()
    return size


def by_text(table: Iterable[Row]) -> list[str]:
    """Rows that come as JSON, from a process of its own."""
    return sorted(json.dumps(row, sort_keys=True) for row in table)


def test_a_state_is_that_of_a_process(spark: SparkSession, tmp_path: Path) -> None:
    """A cut, the state of the first part on Spark, the second part from it: as in a process."""
    tables = read_input_tables(str(DATA / "nightly" / "tables")).tables
    (cut_ms,) = cuts_of(tables, 5, 1)
    for name, part in (("first", until(tables, cut_ms)), ("second", since(tables, cut_ms))):
        (tmp_path / name).mkdir()
        for table, rows in part.items():
            plain = rows.select(INPUT_TABLES[table].column_names)
            pq.write_table(plain, tmp_path / name / f"{table}.parquet")
    runtime, state = SparkRuntime(spark), str(tmp_path / "state")
    first = InputTables.read(spark, str(tmp_path / "first"))
    ours = simulate_and_write(first, str(tmp_path / "one"), state_output=state, runtime=runtime)
    here = simulate_and_write(
        ArrowTables(until(tables, cut_ms)), tmp_path / "here", state_output=tmp_path / "state here"
    )
    assert ours == here
    second = with_state(spark, InputTables.read(spark, str(tmp_path / "second")), state)
    continued = simulate_and_write(
        second, str(tmp_path / "two"), state_output=str(tmp_path / "both"), runtime=runtime
    )
    opened = opening_state.with_state(ArrowTables(since(tables, cut_ms)), state)
    assert continued == simulate_and_write(
        opened, tmp_path / "two here", state_output=tmp_path / "both here"
    )
    assert continued.tables["epochs"].rows > 0
