"""The simulation in one process against the plain replay, on every recording at once."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rebalance_core
from rebalance_core.checks.input_tables import ArrowTables, input_tables_of, read_input_tables
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES, SIMULATED_TABLES
from rebalance_core.engine import ledger_pass
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.kernels.group_kinds import REASONS
from rebalance_core.kernels.ledger import ledger_rows
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.process.simulate import (
    ArrowLedger,
    simulate,
    simulate_and_write,
    simulated_tables,
)
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.table_parts import PARTS
from tests.recordings.tables import (
    DATA,
    RECORDINGS,
    Row,
    Tables,
    ingested_recording,
    ledger_of,
    replayed,
    rows,
)

JOIN_LEAVE = DATA / "join-leave" / "tables"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> ArrowTables:
    """All recordings as one fleet: each is a cluster of its own name; rows in reverse order."""
    folder = tmp_path_factory.mktemp("fleet")
    for table in INPUT_TABLES:
        lines = [
            json.dumps(row | {"cluster": name})
            for name in RECORDINGS
            for row in rows(DATA / name / "tables" / f"{table}.jsonl")
        ]
        (folder / f"{table}.jsonl").write_text("\n".join(reversed(lines)) + "\n")
    return read_input_tables(str(folder))


@pytest.fixture(scope="module")
def ledger(fleet: ArrowTables) -> ArrowLedger:
    return simulate(fleet)


@pytest.fixture(scope="module")
def day() -> dict[str, pa.Table]:
    """A generated day of 25 groups."""
    plan = FleetPlan(groups=25, days=1, seed=20)
    return {
        name: pa.Table.from_pylist(
            [
                row
                for part in parts
                for number in range(part.entities(plan))
                for piece in part.rows(plan, number)
                for row in rows_of(piece)
            ],
            INPUT_TABLES[name].arrow_schema(),
        )
        for name, parts in PARTS.items()
    }


def rows_of(piece: list[Row] | dict[str, object]) -> list[Row]:
    if isinstance(piece, list):
        return piece
    found: list[Row] = pa.table(piece).to_pylist()
    return found


@pytest.mark.parametrize("table", SIMULATED_TABLES)
def test_a_fleet_gives_the_rows_of_the_replay(ledger: ArrowLedger, table: str) -> None:
    expected = [row | {"cluster": name} for name in RECORDINGS for row in replayed(name)[table]]
    found = ledger.tables()[table].to_pylist()
    assert len(found) == len(expected)
    assert (len(found) > 0) == (not table.startswith("pop_"))  # nobody pops in them
    assert by_text(found) == by_text(expected)


def test_columns_are_the_contract_s(ledger: ArrowLedger) -> None:
    for name, table in ledger.tables().items():
        assert table.schema.equals(LEDGER_TABLES[name].arrow_schema())


@pytest.mark.parametrize("engine", ["vectorized", "reference"])
def test_request_modes_reach_their_own_group_alone(tmp_path: Path, engine: str) -> None:
    tables: Any = ingested_recording("pop").tables
    for name in INPUT_TABLES:
        lines = map(json.dumps, tables[name])
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    ledger = simulate(read_input_tables(str(tmp_path)), SimulationOptions(engine=engine))
    assert_equal(ledger, ledger_of(tables))


def test_both_engines_give_the_same_day(day: dict[str, pa.Table], tmp_path: Path) -> None:
    written = {}
    for engine in ("vectorized", "reference"):
        options = SimulationOptions(engine=engine)
        written[engine] = simulate_and_write(input_tables_of(day), tmp_path / engine, options)
    ours, theirs = written["vectorized"], written["reference"]
    assert ours.tables == theirs.tables
    assert ours.facts == theirs.facts
    empty = {name for name, table in ours.tables.items() if not table.rows}
    assert empty <= {"rejected", "pop_reach", "pop_metrics", "pop_starts", "queue_states"}
    assert set(ours.replay_reasons) <= set(REASONS)
    assert theirs.replay_reasons == {"REFERENCE": ours.facts["groups"]}


def test_a_notebook_simulates_arrow_tables(day: dict[str, pa.Table]) -> None:
    ledger = rebalance_core.simulate(day, SimulationOptions(strategy="AVG_BY_CIRCLE"))
    assert set(ledger.memberships["strategy"].to_pylist()) == {"AVG_BY_CIRCLE"}
    assert ledger.epochs.num_rows > 25


@pytest.mark.parametrize("engine", ["vectorized", "reference"])
def test_output_is_cut_to_the_groups_and_times_wanted(engine: str) -> None:
    inputs = read_input_tables(str(JOIN_LEAVE))
    epochs = replayed("join-leave")["epochs"]
    start, end = epochs[2]["from_ms"], epochs[4]["from_ms"]
    options = SimulationOptions(engine=engine, group="order-*", from_ms=start, to_ms=end)
    cut, whole = simulate(inputs, options), simulate(inputs)
    for name in ("epochs", "group_metrics", "diffs"):
        assert set(cut.tables()[name]["epoch"].to_pylist()) == {2, 3}
    metrics = [row for row in whole.group_metrics.to_pylist() if row["epoch"] in (2, 3)]
    assert by_text(cut.group_metrics.to_pylist()) == by_text(metrics)
    for row in cut.ownership.to_pylist():
        assert row["from_ms"] < end
        assert row["to_ms"] is None or row["to_ms"] > start
    assert simulate(inputs, SimulationOptions(group="order_*")).epochs.num_rows == 0


@pytest.mark.parametrize("engine", ["vectorized", "reference"])
def test_states_of_queues_are_cut_to_the_epochs_wanted(engine: str) -> None:
    """x keeps what it had while it is suspended and other things happen."""
    base = {"cluster": "c", "sequence": 0, "consumer_group": "g"}
    at = [1_700_000_000_000 + n * 300_000 for n in range(7)]
    config = {"topic": "T", "broker_name": "a", "write_queue_nums": 1, "perm": 6}
    events: list[dict[str, Any]] = [
        config | {"event_ms": at[0], "event_type": "TOPIC_CONFIG", "read_queue_nums": 1},
        {"event_ms": at[1], "event_type": "CONSUMER_JOIN", "client_id": "x"},
        {"event_ms": at[2], "event_type": "CONSUMER_SUSPEND", "client_id": "x"},
        {"event_ms": at[3], "event_type": "TOPIC_DELETED", "topic": "T"},
        {"event_ms": at[4], "event_type": "CONSUMER_JOIN", "client_id": "y"},
        {"event_ms": at[5], "event_type": "CONSUMER_LEAVE", "client_id": "x"},
    ]
    rows = [
        base | row | {"subscriptions": ["T"]}
        if row["event_type"] == "CONSUMER_JOIN"
        else base | row
        for row in events
    ]
    for row in rows[:1] + rows[3:4]:
        del row["consumer_group"]
    given = {
        "cluster_events": pa.Table.from_pylist(rows, INPUT_TABLES["cluster_events"].arrow_schema())
    }

    def states(start: int, end: int) -> list[tuple[int, int | None]]:
        options = SimulationOptions(
            engine=engine, from_ms=start, to_ms=end, include_retry_topics=False
        )
        rows = simulate(given, options).queue_states.to_pylist()
        return [(row["from_epoch"], row["to_epoch"]) for row in rows]

    assert states(at[0], at[6]) == [(2, 4)]
    assert states(at[4], at[5]) == [(2, 4)]
    assert states(at[1], at[3]) == []
    assert states(at[5], at[6]) == []


def test_events_of_unknown_members_are_rejected_and_nothing_else_is_lost(tmp_path: Path) -> None:
    join = {
        "cluster": "c", "event_ms": 1_700_000_000_000, "sequence": 0, "event_type": "CONSUMER_JOIN",
        "consumer_group": "g", "client_id": "a", "subscriptions": ["T"],
    }  # fmt: skip
    leave = join | {"sequence": 1, "event_type": "CONSUMER_LEAVE", "client_id": "ghost"}
    path = tmp_path / "cluster_events.jsonl"
    path.write_text("\n".join(map(json.dumps, [join, leave])) + "\n")
    for engine in ("vectorized", "reference"):
        ledger = simulate(read_input_tables(str(tmp_path)), SimulationOptions(engine=engine))
        (rejected,) = ledger.rejected.to_pylist()
        assert rejected["issues"][0]["code"] == "UNKNOWN_MEMBER"
        assert rejected["source"] == "cluster_events.jsonl:2"
        assert json.loads(rejected["raw"])["client_id"] == "ghost"
        (epoch,) = ledger.epochs.to_pylist()
        assert (epoch["members"], epoch["status"]) == (1, "FROZEN")


@pytest.mark.parametrize("engine", ["vectorized", "reference"])
def test_rejected_rows_of_typed_tables_have_their_text(engine: str) -> None:
    join = {
        "cluster": "c", "event_ms": 1_700_000_000_000, "sequence": 0, "event_type": "CONSUMER_JOIN",
        "consumer_group": "g", "client_id": 'a"ü', "subscriptions": ["T", "U"],
    }  # fmt: skip
    unknown_member = join | {"sequence": 1, "event_type": "CONSUMER_LEAVE", "client_id": "ghost"}
    bad = join | {"sequence": 2, "event_type": "CONSUMER_TEA", "client_id": None}
    schema = INPUT_TABLES["cluster_events"].arrow_schema()
    events = pa.Table.from_pylist([join, unknown_member, bad], schema)
    # a column that the contract does not know: the text is made when the rows are read
    wider = events.append_column("other", pa.nulls(3, pa.string()))
    late, early = (
        simulate({"cluster_events": rows}, SimulationOptions(engine=engine)).rejected.to_pylist()
        for rows in (events, wider)
    )
    assert late == early
    assert [json.loads(row["raw"]) for row in late] == [
        {name: value for name, value in bad.items() if value is not None},
        unknown_member,
    ]


def test_wrong_options_are_refused_before_anything_runs() -> None:
    inputs = read_input_tables(str(JOIN_LEAVE))
    with pytest.raises(UsageError, match="unknown engine"):
        simulate(inputs, SimulationOptions(engine="warp"))
    with pytest.raises(UsageError):
        simulate(inputs, SimulationOptions(strategy="AVERAGE"))
    with pytest.raises(InputRefused, match="lacks the column"):
        rebalance_core.simulate({"cluster_events": pa.table({"cluster": ["c"]})})


def assert_equal(ledger: ArrowLedger, expected: Tables) -> None:
    for name in SIMULATED_TABLES:
        assert by_text(ledger.tables()[name].to_pylist()) == by_text(expected[name]), name


def by_text(table: list[Row]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in table)


@pytest.mark.parametrize("engine", ["vectorized", "reference"])
@pytest.mark.parametrize("chosen", [("pull_starts", "diffs"), *((name,) for name in LEDGER_TABLES)])
def test_chosen_tables_are_those_of_a_whole_run(
    tmp_path: Path, engine: str, chosen: tuple[str, ...]
) -> None:
    """With bounds of time as well, which the rows of epochs decide for metrics."""
    inputs = read_input_tables(str(DATA / "pathologies" / "tables"))
    for bounds in ({}, {"from_ms": rows_of_pathologies()[3]["from_ms"]}):
        whole = SimulationOptions(engine=engine, **bounds)
        some = SimulationOptions(engine=engine, tables=chosen, **bounds)
        all_tables = simulated_tables(inputs, whole)
        found = simulated_tables(inputs, some)
        assert list(found) == [n for n in LEDGER_TABLES if n in (*chosen, "rejected")]
        for name, table in found.items():
            assert sorted(map(str, table.to_pylist())) == sorted(
                map(str, all_tables[name].to_pylist())
            ), name
    if len(chosen) > 1:
        theirs = simulate_and_write(inputs, tmp_path / "all", whole)
        ours = simulate_and_write(inputs, tmp_path / "some", some)
        assert ours.tables == {name: theirs.tables[name] for name in ours.tables}
        assert {entry.name for entry in (tmp_path / "some").iterdir()} == {*chosen, "rejected"}
        known = {"groups", "epochs", "orphaned", "shared", "failed_starts", "first_ms", "last_ms"}
        some_facts, all_facts = dict(ours.facts), dict(theirs.facts)
        assert {n: some_facts[n] for n in known} == {n: all_facts[n] for n in known}
        assert ours.facts["moved"] is None
        assert ours.facts["worst_groups"][0]["moved"] is None


def rows_of_pathologies() -> list[Row]:
    return replayed("pathologies")["epochs"]


def test_only_chosen_tables_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def noting(name: str, *arguments: Any, **more: Any) -> Any:
        made.append(name)
        return ledger_rows(name, *arguments, **more)

    monkeypatch.setattr(ledger_pass, "ledger_rows", noting)
    simulated_tables(read_input_tables(str(JOIN_LEAVE)), SimulationOptions(tables="diffs"))
    assert made == ["epochs", "diffs"]


def test_a_table_that_there_is_not_is_refused() -> None:
    inputs = read_input_tables(str(JOIN_LEAVE))
    with pytest.raises(UsageError, match="tables: unknown table 'diff'; valid: epochs, owner"):
        rebalance_core.simulate(inputs.tables, tables=["diff"])
    with pytest.raises(UsageError, match="no table is named"):
        simulated_tables(inputs, SimulationOptions(tables=()))
    with pytest.raises(UsageError, match="an ArrowLedger has all"):
        simulate(inputs, SimulationOptions(tables=["diffs"]))
    assert list(rebalance_core.simulate(inputs.tables, tables=["diffs"])) == ["diffs", "rejected"]
