"""A task of the edits, without a JVM: all histories of its rows, under names of their own."""

import pyarrow as pa

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.technical_columns import TABLE
from rebalance_core.engine.units import PART
from rebalance_core.planning.sweep.history_names import cluster_of
from rebalance_core.planning.sweep.history_rows import EVENTS, HistoryRows
from rebalance_core.planning.variants import History, HistoryEdits
from rebalance_core.spark.plan.edit_task import EditTask
from tests.unit.planning.scenario.groups import CLUSTER, END_MS, GROUP, dump, scenario

GROW = scenario('kind = "add_consumers"; at = "+10m"; group = "g"; count = 2')
COLUMNS = (*INPUT_TABLES[EVENTS].column_names, TABLE)


def test_a_task_names_the_cluster_of_each_history() -> None:
    rows = [row | {TABLE: EVENTS, PART: 0} for row in dump() if row.get("consumer_group") == GROUP]
    schema = INPUT_TABLES[EVENTS].arrow_schema().append(pa.field(TABLE, pa.string()))
    chunk = pa.Table.from_pylist(rows, schema.append(pa.field(PART, pa.int32())))
    edits = HistoryEdits((History(None, 0), History(GROW, 0)), {CLUSTER: END_MS})
    made = pa.Table.from_batches(list(EditTask(edits, 2, COLUMNS)(chunk.to_batches())))
    assert tuple(made.column_names) == COLUMNS
    clusters = made["cluster"].to_pylist()
    assert [clusters.count(cluster_of(CLUSTER, number)) for number in range(2)] == [4, 6]
    edited = HistoryRows(chunk, edits).of(1).select(COLUMNS).drop_columns(["cluster"])
    assert made.slice(4).drop_columns(["cluster"]).to_pylist() == edited.to_pylist()
