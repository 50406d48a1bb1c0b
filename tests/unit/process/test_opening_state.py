"""A run that begins at the end of another gives the later rows of one run over both inputs."""

import random
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rebalance_core
from rebalance_core.checks.input_tables import ArrowTables, input_tables_of, read_input_tables
from rebalance_core.checks.opening_state import end_of, with_state
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.cli.main import main
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.paths import STATE
from rebalance_core.engine.options import ENGINES, SimulationOptions
from rebalance_core.model.errors import InputRefused
from rebalance_core.process.simulate import simulate, simulate_and_write
from rebalance_core.storage.place import place_of
from rebalance_core.storage.run_folder import read_run
from tests.recordings.tables import DATA, RECORDINGS, Row
from tests.unit.process.test_simulate import day as day  # a fixture

TIMES = {
    "cluster_events": "event_ms",
    "queue_offsets": "observed_ms",
    "committed_offsets": "observed_ms",
}
Tables = Mapping[str, pa.Table]


def tables_of(recording: str) -> Tables:
    return read_input_tables(str(DATA / recording / "tables")).tables


def until(tables: Tables, end_ms: int) -> Tables:
    """Return what was known at a moment."""
    return {
        name: rows.filter(pc.less(rows[TIMES[name]], end_ms)) if name in TIMES else rows
        for name, rows in tables.items()
    }


def since(tables: Tables, begin_ms: int) -> Tables:
    return {
        name: rows.filter(pc.greater_equal(rows[TIMES[name]], begin_ms)) if name in TIMES else rows
        for name, rows in tables.items()
    }


def cuts_of(tables: Tables, seed: int, count: int) -> list[int]:
    """Return moments of events, after the first join."""
    events = tables["cluster_events"]
    joins = events.filter(pc.equal(events["event_type"], "CONSUMER_JOIN"))
    first = pc.min(joins["event_ms"]).as_py()
    moments = sorted({ms for ms in events["event_ms"].to_pylist() if ms > first})
    return random.Random(seed).sample(moments, min(count, len(moments)))


def state_of(tables: Tables, end_ms: int, folder: Path, options: SimulationOptions) -> str:
    """Simulate until a moment; return the folder of the state."""
    first = ArrowTables(until(tables, end_ms))
    simulate_and_write(first, folder / "ledger", options, state_output=folder / STATE)
    return str(folder / STATE)


def later_rows(ledger: Tables, begin_ms: int) -> dict[str, list[Row]]:
    """Return the rows of a whole ledger that begin at a moment or after it."""
    epochs = {
        (row["cluster"], row["consumer_group"], row["epoch"])
        for row in ledger["epochs"].to_pylist()
        if row["from_ms"] >= begin_ms
    }

    def later(row: Row) -> bool:
        begin = row.get("from_ms", row.get("change_ms"))
        if begin is not None:
            return bool(begin >= begin_ms)
        epoch = row["epoch"] if "epoch" in row else row["from_epoch"]
        return (row["cluster"], row["consumer_group"], epoch) in epochs

    return {
        name: [row for row in table.to_pylist() if name != "rejected" and later(row)]
        for name, table in ledger.items()
    }


def by_text(tables: Mapping[str, list[Row]]) -> dict[str, list[str]]:
    return {name: sorted(map(repr, rows)) for name, rows in tables.items()}


def assert_continues(tables: Tables, cut_ms: int, folder: Path, options: SimulationOptions) -> int:
    """Assert the property for later rows and for all rows again; return how many rows there are."""
    whole = by_text(later_rows(simulate(ArrowTables(tables), options).tables(), cut_ms))
    state = state_of(tables, cut_ms, folder, options)
    for new in (since(tables, cut_ms), tables):
        ledger = simulate(with_state(ArrowTables(new), state), options)
        assert by_text({n: t.to_pylist() for n, t in ledger.tables().items()}) == whole
    return sum(map(len, whole.values()))


@pytest.mark.parametrize(("recording", "engine"), [*zip(RECORDINGS, cycle(ENGINES), strict=False)])
def test_recordings_continue_where_they_are_cut(
    recording: str, engine: str, tmp_path: Path
) -> None:
    tables = tables_of(recording)
    (cut_ms,) = cuts_of(tables, 60, 1)
    assert assert_continues(tables, cut_ms, tmp_path, SimulationOptions(engine=engine))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_generated_day_continues(day: Tables, tmp_path: Path, engine: str) -> None:
    tables = input_tables_of(day).tables
    (cut_ms,) = cuts_of(tables, 3, 1)
    assert assert_continues(tables, cut_ms, tmp_path, SimulationOptions(engine=engine)) > 100


def test_states_follow_each_other(tmp_path: Path) -> None:
    tables = tables_of("nightly")
    first_ms, second_ms = sorted(cuts_of(tables, 8, 2))
    options = SimulationOptions()
    first = state_of(tables, first_ms, tmp_path / "1", options)
    between = since(until(tables, second_ms), first_ms)
    opened = with_state(ArrowTables(between), first)
    simulate_and_write(opened, tmp_path / "2", options, state_output=tmp_path / "of 2")
    second = with_state(ArrowTables(since(tables, second_ms)), str(tmp_path / "of 2"))
    expected = later_rows(simulate(ArrowTables(tables)).tables(), second_ms)
    found = {name: table.to_pylist() for name, table in simulate(second).tables().items()}
    assert by_text(found) == by_text(expected)
    assert found["epochs"]


# What the input states beside the state.


def opened(tmp_path: Path, recording: str = "join-leave") -> tuple[Tables, int, str]:
    tables = tables_of(recording)
    (cut_ms,) = cuts_of(tables, 1, 1)
    return tables, cut_ms, state_of(tables, cut_ms, tmp_path, SimulationOptions())


def test_an_earlier_event_that_the_state_lacks_is_rejected(tmp_path: Path) -> None:
    tables, cut_ms, state = opened(tmp_path)
    events = since(tables, cut_ms)["cluster_events"]
    late = events.slice(0, 1).to_pylist()[0] | {"event_ms": cut_ms - 50_000, "sequence": 77}
    rows = pa.concat_tables([events, pa.Table.from_pylist([late], events.schema)])
    checked = check_tables(with_state(ArrowTables({"cluster_events": rows}), state))
    (rejected,) = checked.rejected.to_pylist()
    assert [issue["code"] for issue in rejected["issues"]] == ["BEFORE_STATE"]
    assert str(checked.state_end_ms) in rejected["issues"][0]["message"]
    assert (checked.counts["cluster_events"].rows, checked.counts["cluster_events"].bad) == (
        len(rows),
        1,
    )


def test_what_the_state_has_stands(tmp_path: Path) -> None:
    tables, cut_ms, state = opened(tmp_path)
    earlier = until(tables, cut_ms)["cluster_events"]
    changed = earlier.slice(len(earlier) - 1).to_pylist()[0] | {"detail": "another"}
    rows = pa.Table.from_pylist([changed], earlier.schema)
    checked = check_tables(with_state(ArrowTables({"cluster_events": rows}), state))
    assert len(checked.rejected) == 1
    assert len(checked.tables["cluster_events"]) == len(earlier)


def test_settings_are_those_of_the_input(tmp_path: Path) -> None:
    tables, _, state = opened(tmp_path)
    groups = tables["consumer_groups"].to_pylist()
    stated = [group | {"pull_threshold_for_queue": 77} for group in groups]
    new = dict(tables) | {
        "consumer_groups": pa.Table.from_pylist(stated, tables["consumer_groups"].schema)
    }
    checked = check_tables(with_state(ArrowTables(new), state))
    used = checked.tables["consumer_groups"]["pull_threshold_for_queue"].to_pylist()
    assert used == [77] * len(groups)
    assert not len(checked.rejected)


def test_members_of_the_state_keep_the_strategy_that_was_shown(tmp_path: Path) -> None:
    tables = tables_of("join-leave")
    (cut_ms,) = cuts_of(tables, 1, 1)
    schema = tables["consumer_groups"].schema

    def with_strategy(strategy: str) -> pa.Table:
        groups = tables["consumer_groups"].to_pylist()
        return pa.Table.from_pylist([row | {"strategy": strategy} for row in groups], schema)

    events = tables["cluster_events"]
    bare = [row | {"strategy": None} for row in events.to_pylist()]
    shown = [
        row | {"strategy": "AVG_BY_CIRCLE"}
        if row["event_type"] == "CONSUMER_JOIN" and row["event_ms"] < cut_ms
        else row
        for row in bare
    ]
    assert shown != bare
    night = {**tables, "cluster_events": pa.Table.from_pylist(bare, events.schema)}
    first = {**night, "consumer_groups": with_strategy("AVG_BY_CIRCLE")}
    state = state_of(first, cut_ms, tmp_path, SimulationOptions())
    inferred = {**night, "consumer_groups": with_strategy("AVG")}
    stated = inferred | {"cluster_events": pa.Table.from_pylist(shown, events.schema)}
    expected = later_rows(simulate(ArrowTables(stated)).tables(), cut_ms)
    for new in (since(inferred, cut_ms), inferred):
        ledger = simulate(with_state(ArrowTables(new), state)).tables()
        found = {name: rows.to_pylist() for name, rows in ledger.items()}
        assert by_text(found) == by_text(expected)
    strategies = {row["strategy"] for row in expected["memberships"]}
    assert strategies == {"AVG"}


def test_rows_that_no_run_checked_are_checked(tmp_path: Path) -> None:
    """What an ingest wrote is a state, too; its bad rows are those of the run before."""
    tables, cut_ms, _ = opened(tmp_path)
    earlier = until(tables, cut_ms)
    events = earlier["cluster_events"]
    joined = next(row for row in events.to_pylist() if row["event_type"] == "CONSUMER_JOIN")
    bad = pa.Table.from_pylist([joined | {"strategy": "NONE(", "sequence": 98}], events.schema)
    written = {**earlier, "cluster_events": pa.concat_tables([events, bad])}
    for name, rows in written.items():
        (tmp_path / "ingested").mkdir(exist_ok=True)
        plain = rows.select(INPUT_TABLES[name].column_names)
        pq.write_table(plain, tmp_path / "ingested" / f"{name}.parquet")
    new = with_state(ArrowTables(since(tables, cut_ms)), str(tmp_path / "ingested"))
    checked = check_tables(new)
    assert len(checked.rejected) == 0
    assert checked.counts["cluster_events"].bad == 0
    assert len(checked.tables["cluster_events"]) == len(tables["cluster_events"])
    found = {name: rows.to_pylist() for name, rows in simulate(new).tables().items()}
    assert by_text(found) == by_text(later_rows(simulate(ArrowTables(tables)).tables(), cut_ms))


def test_new_rows_of_one_key_that_differ_in_settings_are_rejected(tmp_path: Path) -> None:
    """Rows that repeat the state are compared without settings; new rows are not."""
    tables, _, state = opened(tmp_path)
    events = tables["cluster_events"]
    joined = next(row for row in events.to_pylist() if row["event_type"] == "CONSUMER_JOIN")
    late_ms = pc.max(events["event_ms"]).as_py() + 1_000
    both = [joined | {"event_ms": late_ms, "strategy": text} for text in ("AVG", "AVG_BY_CIRCLE")]
    rows = pa.concat_tables([events, pa.Table.from_pylist(both, events.schema)])
    checked = check_tables(with_state(ArrowTables({**tables, "cluster_events": rows}), state))
    codes = [[issue["code"] for issue in row["issues"]] for row in checked.rejected.to_pylist()]
    assert codes == [["DUPLICATE_KEY"]] * 2


def test_bad_rows_of_the_state_are_not_rejected_twice(tmp_path: Path) -> None:
    tables, cut_ms, _ = opened(tmp_path)
    events = tables["cluster_events"]
    joined = next(row for row in events.to_pylist() if row["event_type"] == "CONSUMER_JOIN")
    absent = joined | {"event_type": "CONSUMER_LEAVE", "client_id": "absent", "sequence": 99}
    absent |= {"subscriptions": None, "strategy": None, "version": None}
    more = pa.concat_tables([events, pa.Table.from_pylist([absent], events.schema)])
    whole = {**tables, "cluster_events": more}
    assert len(simulate(ArrowTables(whole)).rejected) == 1
    state = state_of(whole, cut_ms, tmp_path / "again", SimulationOptions())
    assert len(simulate(with_state(ArrowTables(since(whole, cut_ms)), state)).rejected) == 0


# The job.


def test_the_job_keeps_a_state_and_begins_at_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables, cut_ms, _ = opened(tmp_path)
    for name, part in (("first", until(tables, cut_ms)), ("second", since(tables, cut_ms))):
        for table, rows in part.items():
            plain = rows.select(INPUT_TABLES[table].column_names)
            (tmp_path / name).mkdir(exist_ok=True)
            pq.write_table(plain, tmp_path / name / f"{table}.parquet")
    one, two = tmp_path / "one", tmp_path / "two"
    assert main("simulate", ["--input", str(tmp_path / "first"), "--output", str(one)]) == 0
    begin = ["--input", str(tmp_path / "second"), "--state", str(one)]
    assert main("simulate", [*begin, "--output", str(two), "--dry-run"]) == 0
    assert main("simulate", [*begin, "--output", str(two)]) == 0
    assert f"with an event after the end of {one}" in capsys.readouterr().out
    record = read_run(place_of(two))
    assert record["period_from_ms"] >= cut_ms
    assert record["inputs"][0]["rows"] == len(since(tables, cut_ms)["cluster_events"])
    whole = rebalance_core.simulate(tables)
    expected = by_text(later_rows(whole, cut_ms))
    for source in (str(tmp_path / "second"), since(tables, cut_ms)):
        again = rebalance_core.simulate(source, state=one)
        assert by_text({name: rows.to_pylist() for name, rows in again.items()}) == expected
    nothing = ["--input", str(tmp_path / "first"), "--state", str(one)]
    assert main("simulate", [*nothing, "--output", str(tmp_path / "none")]) == 0
    assert f"--state {one}: no input row matches" in capsys.readouterr().err
    # the state of the second run is that of both
    assert main("simulate", [*begin, "--output", str(two)]) == 5
    assert main("simulate", ["--input", str(two / STATE), "--output", str(tmp_path / "all")]) == 0
    same = read_run(place_of(tmp_path / "all"))["outputs"]
    assert same["ownership"]["rows"] == len(whole["ownership"])


def test_a_folder_without_a_run_is_no_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", str(DATA / "join-leave" / "tables"), "--output", str(tmp_path / "out")]
    assert main("simulate", [*words, "--state", str(tmp_path / "nowhere")]) == 4
    said = capsys.readouterr().err
    assert "--state: " in said
    assert "nowhere holds no _run.json" in said


def test_a_run_without_events_is_no_state(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="has no event"):
        end_of(None, "run")


def test_the_output_may_not_be_the_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", str(DATA / "join-leave" / "tables"), "--output"]
    out = str(tmp_path / "out")
    assert main("simulate", [*words, out]) == 0
    assert main("simulate", [*words, out, "--state", out, "--overwrite"]) == 5
    assert "--state" in capsys.readouterr().err


@pytest.mark.parametrize("job", ["simulate", "plan"])
def test_a_condition_on_times_needs_a_state(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--input-tables", "db", "--where", "event_ms >= 5", "--output", "x"]
    assert main(job, words) == 2
    said = capsys.readouterr().err
    assert "--where on event_ms cuts the history" in said
    assert ("--state RUN" in said) == (job == "simulate")
