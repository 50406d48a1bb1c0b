"""The distributed simulation against the plain replay, on every recording at once."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES, SIMULATED_TABLES
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.model.errors import UsageError
from rebalance_core.spark import InputTables, Ledger, simulate
from rebalance_core.spark.engine.prepared_frames import prepared_rows
from rebalance_core.spark.engine.table_pass import table_of
from rebalance_core.spark.engine.work_units import assign_to_tasks
from rebalance_core.spark.generate import generate
from rebalance_core.spark.tables.quarantine import quarantine
from rebalance_core.spark.tables.write import row_hash
from rebalance_core.synthetic.fleet import FleetPlan
from tests.recordings.tables import DATA, RECORDINGS, Row, ledger_of, replayed, rows


@pytest.fixture(scope="module")
def fleet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> InputTables:
    """All recordings as one fleet: each is a cluster of its own name; rows in reverse order."""
    folder = tmp_path_factory.mktemp("fleet")
    for table in INPUT_TABLES:
        lines = [
            json.dumps(row | {"cluster": name})
            for name in RECORDINGS
            for row in rows(DATA / name / "tables" / f"{table}.jsonl")
        ]
        (folder / f"{table}.jsonl").write_text("\n".join(reversed(lines)) + "\n")
    return InputTables.read(spark, str(folder))


@pytest.fixture(scope="module")
def ledger(fleet: InputTables) -> Ledger:
    return simulate(fleet)


@pytest.mark.parametrize("table", SIMULATED_TABLES)
def test_a_fleet_gives_the_rows_of_the_replay(ledger: Ledger, table: str) -> None:
    expected = [row | {"cluster": name} for name in RECORDINGS for row in replayed(name)[table]]
    found = collected(getattr(ledger, table))
    assert len(found) == len(expected)
    assert (len(found) > 0) == (not table.startswith("pop_"))  # nobody pops in them
    assert by_text(found) == by_text(expected)


@pytest.mark.parametrize("engine", ["vectorized", "reference"])
def test_request_modes_reach_their_own_group_alone(
    spark: SparkSession, tmp_path: Path, engine: str
) -> None:
    tables = ingest_collection(DATA / "pop" / "collection").tables
    for name in INPUT_TABLES:
        lines = map(json.dumps, tables[name])
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    ledger = simulate(InputTables.read(spark, str(tmp_path)), SimulationOptions(engine=engine))
    expected = ledger_of(tables)
    for table in SIMULATED_TABLES:
        assert by_text(collected(getattr(ledger, table))) == by_text(expected[table]), table
        assert expected[table], table


def inputs_of(frames: dict[str, DataFrame]) -> InputTables:
    return InputTables(
        frames["cluster_events"],
        frames.get("consumer_groups"),
        frames.get("queue_offsets"),
        frames.get("committed_offsets"),
    )


@pytest.fixture(scope="module")
def day(spark: SparkSession) -> InputTables:
    """A generated day of 200 groups."""
    tables = generate(spark, FleetPlan(groups=200, days=1, seed=20)).tables()
    return inputs_of({name: frame.persist() for name, frame in tables.items()})


def test_both_engines_give_the_same_day(day: InputTables) -> None:
    vectorized = simulate(day, SimulationOptions(partitions=3))
    reference = simulate(day, SimulationOptions(engine="reference"))
    for name in LEDGER_TABLES:
        ours, theirs = (fingerprint(e.frames()[name], name) for e in (vectorized, reference))
        assert ours == theirs, name
        assert ours[0] > 0 or name == "rejected"
    assert vectorized.replayed is not None
    assert vectorized.replayed.collect() == []  # suspended, mixed and doubled members among them


def test_a_giant_group_is_divided_by_its_queues(day: InputTables) -> None:
    checked = quarantine(day)
    tables = checked.tables
    options = EngineOptions(queue_offsets_given=True, committed_offsets_given=True)

    def pack(rows: DataFrame) -> DataFrame:
        return prepared_rows(rows, options)

    whole = assign_to_tasks(tables, None, 2, pack=pack)
    parts = assign_to_tasks(tables, None, 3, giant_cells=2_000, pack=pack)
    assert parts.everything.where("_parts > 1").count() > 0
    for name in ("epochs", "ownership", "pull_starts"):  # counted whole, and by queue
        ours, theirs = (fingerprint(table_of(name, d, options), name) for d in (parts, whole))
        assert ours == theirs, name


def test_columns_are_the_contract_s(ledger: Ledger) -> None:
    assert {name: tuple(frame.columns) for name, frame in ledger.frames().items()} == {
        name: table.column_names for name, table in LEDGER_TABLES.items()
    }


def test_partitioning_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    tables = DATA / "pathologies" / "tables"
    inputs = InputTables.read(spark, str(tables))
    scattered = inputs_of({name: frame.repartition(5) for name, frame in inputs.tables().items()})
    expected = replayed("pathologies")
    ledger = simulate(scattered)
    for name in ("ownership", "pull_starts"):
        assert by_text(collected(getattr(ledger, name))) == by_text(expected[name])


def test_output_is_cut_to_the_groups_and_times_wanted(spark: SparkSession) -> None:
    inputs = InputTables.read(spark, str(DATA / "join-leave" / "tables"))
    epochs = replayed("join-leave")["epochs"]
    start, end = epochs[2]["from_ms"], epochs[4]["from_ms"]
    cut = simulate(inputs, SimulationOptions(group="order-*", from_ms=start, to_ms=end))
    assert sorted(row["epoch"] for row in collected(cut.epochs)) == [2, 3]
    assert {row["epoch"] for row in collected(cut.group_metrics)} == {2, 3}
    assert {row["epoch"] for row in collected(cut.diffs)} == {2, 3}
    nobody = simulate(inputs, SimulationOptions(group="order_*"))
    assert collected(nobody.epochs) == []


def test_events_of_unknown_members_are_rejected_and_nothing_else_is_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    join = {
        "cluster": "c", "event_ms": 1_700_000_000_000, "sequence": 0, "event_type": "CONSUMER_JOIN",
        "consumer_group": "g", "client_id": "a", "subscriptions": ["T"],
    }  # fmt: skip
    leave = join | {"sequence": 1, "event_type": "CONSUMER_LEAVE", "client_id": "ghost"}
    path = tmp_path / "cluster_events.jsonl"
    path.write_text("\n".join(map(json.dumps, [join, leave])) + "\n")
    ledger = simulate(InputTables.read(spark, str(tmp_path)))
    (rejected,) = collected(ledger.rejected)
    assert rejected["issues"][0]["code"] == "UNKNOWN_MEMBER"
    assert rejected["source"].endswith("cluster_events.jsonl:2")
    assert json.loads(rejected["raw"])["client_id"] == "ghost"
    (epoch,) = collected(ledger.epochs)
    assert (epoch["members"], epoch["status"]) == (1, "FROZEN")


def test_a_strategy_for_all_groups_replaces_members_own(spark: SparkSession) -> None:
    inputs = InputTables.read(spark, str(DATA / "join-leave" / "tables"))
    ledger = simulate(inputs, SimulationOptions(strategy="AVG_BY_CIRCLE"))
    strategies = {row["strategy"] for row in collected(ledger.memberships)}
    assert strategies == {"AVG_BY_CIRCLE"}


def test_an_unknown_engine_or_strategy_is_refused_before_anything_runs(
    spark: SparkSession,
) -> None:
    inputs = InputTables.read(spark, str(DATA / "join-leave" / "tables"))
    with pytest.raises(UsageError, match="unknown engine"):
        simulate(inputs, SimulationOptions(engine="warp"))
    with pytest.raises(UsageError):
        simulate(inputs, SimulationOptions(strategy="AVERAGE"))


def fingerprint(frame: DataFrame, table: str) -> tuple[int, int]:
    """Rows, and the order-free sum of their hashes."""
    total = sf.sum(row_hash(LEDGER_TABLES[table]).cast("DECIMAL(20, 0)"))
    row = frame.agg(sf.count(sf.lit(1)), total).first()
    assert row is not None
    return row[0], int(row[1] or 0)


def collected(frame: DataFrame) -> list[Row]:
    return [row.asDict(recursive=True) for row in frame.select(sf.expr("*")).collect()]


def by_text(table: list[Row]) -> list[str]:
    def text(row: dict[str, Any]) -> str:
        return json.dumps(row, sort_keys=True)

    return sorted(map(text, table))
