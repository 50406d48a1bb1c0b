"""What the input states beside the state that a run begins at."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rebalance_core.checks.input_tables import ArrowTables
from rebalance_core.checks.opening_state import with_state
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.process.simulate import simulate
from tests.unit.process.cut_inputs import (
    by_text,
    cuts_of,
    later_rows,
    opened,
    since,
    state_of,
    tables_of,
    until,
)


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
