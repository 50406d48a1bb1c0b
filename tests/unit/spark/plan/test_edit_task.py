"""A task of the edits, without a JVM: every history gets its rows, and untouched ones stay."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.technical_columns import TABLE
from rebalance_core.engine.units import PART
from rebalance_core.planning.variants import History, HistoryEdits
from rebalance_core.spark.plan.edit_task import (
    CLUSTER,
    EVENTS,
    GROUPS,
    NO_GROUP,
    WARNING,
    EditTask,
)
from rebalance_core.spark.plan.history_names import cluster_of
from tests.unit.planning.scenario.groups import CLUSTER as C
from tests.unit.planning.scenario.groups import END_MS, dump, join, numbered, scenario

Row = dict[str, Any]
SCENARIO = scenario(
    'kind = "lose_broker"; at = "+10m"; broker = "b"',
    'kind = "remove_consumers"; at = "+20m"; group = "g"; count = 9',
)
OTHER = join(END_MS, 9) | {"consumer_group": "h"}
SETTINGS = {"cluster": C, "consumer_group": "g", "strategy": "AVG_BY_CIRCLE"}


def rows_of(task: EditTask, given: Iterable[Row]) -> list[Row]:
    fields = {f.name: f for name in (EVENTS, GROUPS) for f in INPUT_TABLES[name].arrow_schema()}
    schema = pa.schema([*fields.values(), (TABLE, pa.string()), (PART, pa.int32())])
    table = pa.Table.from_pylist([row | {PART: 0} for row in given], schema)
    return [row for batch in task(iter(table.to_batches())) for row in batch.to_pylist()]


def short(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    return sorted(
        (row.get("consumer_group") or "", row["event_type"], row["event_ms"], row["sequence"])
        for row in rows
    )


def test_every_history_gets_the_rows_and_only_touched_ones_change() -> None:
    events = numbered([*dump(), OTHER])
    edits = HistoryEdits((History(None, 0), History(SCENARIO, 0)), {C: END_MS})
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
    columns = (*dict.fromkeys(c for t in (EVENTS, GROUPS) for c in INPUT_TABLES[t].column_names),
               TABLE)  # fmt: skip
    made = rows_of(EditTask(edits, 2, columns), given)
    tables: dict[tuple[str, str], list[Row]] = {}
    for row in made:
        tables.setdefault((row["cluster"], row[TABLE]), []).append(row)
    recorded, changed = cluster_of(C, 0), cluster_of(C, 1)
    assert short(tables[recorded, EVENTS]) == short(events)
    assert short(tables[changed, EVENTS]) == short([*shared.rows, *group.rows, *of_group["h"]])
    assert [row["strategy"] for row in tables[recorded, GROUPS]] == ["AVG_BY_CIRCLE"]
    assert [row["strategy"] for row in tables[changed, GROUPS]] == ["AVG_BY_CIRCLE"]
    assert [row["source"] for row in tables[changed, WARNING]] == [
        *shared.warnings,
        *group.warnings,
    ]
    assert (recorded, WARNING) not in tables
    assert all(row["consumer_group"] != NO_GROUP for row in made)
