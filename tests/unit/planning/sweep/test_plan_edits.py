"""Every history gets its rows, and untouched ones stay."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.table import TABLE
from rebalance_core.planning.sweep.plan_edits import (
    CLUSTER,
    EVENTS,
    GROUPS,
    NO_GROUP,
    WARNING,
    HistoryRows,
)
from rebalance_core.planning.variants import EditsByHistory, History
from tests.unit.planning.scenario.groups import CLUSTER as C
from tests.unit.planning.scenario.groups import END_MS, dump, join, numbered, scenario

Row = dict[str, Any]
SCENARIO = scenario(
    'kind = "lose_broker"; at = "+10m"; broker = "b"',
    'kind = "remove_consumers"; at = "+20m"; group = "g"; count = 9',
)
OTHER = join(END_MS, 9) | {"consumer_group": "h"}
SETTINGS = {"cluster": C, "consumer_group": "g", "strategy": "AVG_BY_CIRCLE"}


def chunk_of(given: Iterable[Row]) -> pa.Table:
    fields = {f.name: f for name in (EVENTS, GROUPS) for f in INPUT_TABLES[name].arrow_schema()}
    schema = pa.schema([*fields.values(), (TABLE, pa.string())])
    return pa.Table.from_pylist(list(given), schema)


def by_table(rows: pa.Table) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {}
    for row in rows.to_pylist():
        tables.setdefault(row[TABLE], []).append(row)
    return tables


def short(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    return sorted(
        (row.get("consumer_group") or "", row["event_type"], row["event_ms"], row["sequence"])
        for row in rows
    )


def test_every_history_gets_the_rows_and_only_touched_ones_change() -> None:
    events = numbered([*dump(), OTHER])
    edits = EditsByHistory((History(None, 0), History(SCENARIO, 0)), {C: END_MS})
    of_group = {
        name: [row for row in events if row.get("consumer_group") == name]
        for name in (None, "g", "h")
    }
    shared = edits.edited(1, C, None, of_group[None], None)
    group = edits.edited(1, C, "g", of_group["g"], SETTINGS)
    assert shared.added
    assert group.added
    assert group.warnings
    given = [{"cluster": C, "consumer_group": NO_GROUP, TABLE: CLUSTER}]
    for name, rows in of_group.items():
        given += [row | {"consumer_group": name or NO_GROUP, TABLE: EVENTS} for row in rows]
        given += [SETTINGS | {TABLE: GROUPS}] if name == "g" else []
    histories = HistoryRows(chunk_of(given), edits)
    recorded, changed = by_table(histories.rows_of(0)), by_table(histories.rows_of(1))
    assert recorded.keys() == {EVENTS, GROUPS}
    assert changed.keys() == {EVENTS, GROUPS, WARNING}
    assert short(recorded[EVENTS]) == short(events)
    assert short(changed[EVENTS]) == short([*shared.rows, *group.rows, *of_group["h"]])
    assert [row["strategy"] for row in recorded[GROUPS]] == ["AVG_BY_CIRCLE"]
    assert [row["strategy"] for row in changed[GROUPS]] == ["AVG_BY_CIRCLE"]
    assert [row["source"] for row in changed[WARNING]] == [*shared.warnings, *group.warnings]
    made = [row for rows in (*recorded.values(), *changed.values()) for row in rows]
    assert all(row["consumer_group"] != NO_GROUP for row in made)
    assert histories.rows_of(1).equals(histories.rows_of(1))


def test_settings_in_a_cluster_without_an_event_stay() -> None:
    edits = EditsByHistory((History(SCENARIO, 0),), {C: END_MS})
    alone = SETTINGS | {"cluster": "elsewhere", TABLE: GROUPS}
    [row] = HistoryRows(chunk_of([alone]), edits).rows_of(0).to_pylist()
    assert (row["cluster"], row["consumer_group"]) == ("elsewhere", "g")


def test_no_row_is_no_history() -> None:
    edits = EditsByHistory((History(SCENARIO, 0),), {})
    assert HistoryRows(chunk_of([]), edits).rows_of(0).num_rows == 0
