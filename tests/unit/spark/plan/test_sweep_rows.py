"""Arrow rows of the passes, without a JVM: what counts, what is summed, what edits leave alone."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES
from rebalance_core.planning.scenario.rows import Edited
from rebalance_core.spark.engine.fan_out import TABLE
from rebalance_core.spark.engine.packing import PART
from rebalance_core.spark.plan.edit_task import CLUSTER, EVENTS, GROUPS, NOBODY, WARNING, EditTask
from rebalance_core.spark.plan.sweep_rows import counted, marked, start_sums, step_rows

Row = dict[str, Any]


def ledger(table: str, *rows: Row) -> pa.Table:
    names = {"cluster": "c\x1f1", "consumer_group": "g"}
    return pa.Table.from_pylist([names | row for row in rows], LEDGER_TABLES[table].arrow_schema())


def test_steps_stand_beside_their_metrics_whatever_the_order() -> None:
    epochs = ledger(
        "epochs",
        {"epoch": 1, "from_ms": 20, "causes": ["X"], "orphaned": 2, "shared": 0},
        {"epoch": 0, "from_ms": 10, "causes": [], "orphaned": 0, "shared": 1},
    )
    metrics = ledger(
        "group_metrics",
        {"epoch": 0, "topic": "T", "moved": 7},
        {"epoch": 0, "topic": None, "moved": 8, "amplification": 2.0},
        {"epoch": 1, "topic": None, "moved": 9, "amplification": 3.0},
    )
    steps = marked(step_rows(epochs, metrics), {"c\x1f1": 20}).to_pylist()
    assert [(s["epoch"], s["change_ms"], s["moved"], s["counted"]) for s in steps] == [
        (0, 10, 8, False),
        (1, 20, 9, True),
    ]
    assert [s["amplification"] for s in steps] == [2.0, None]  # in the second nobody reads a queue


def test_without_an_edit_everything_after_the_first_epoch_counts() -> None:
    rows = pa.table({"cluster": ["c\x1f0", "c\x1f0"], "epoch": [0, 1], "change_ms": [5, 6]})
    assert counted(rows, {"c\x1f1": 0}).to_pylist() == [False, True]


def test_messages_are_summed_and_unknown_ones_stay_unknown() -> None:
    starts = ledger(
        "pull_starts",
        {"start_offset": 5, "stored_offset": 9, "skipped": 0},
        {"start_offset": 9, "corrected_offset": 7, "stored_offset": 8, "skipped": 3},
        {"start_offset": 9, "stored_offset": 4, "skipped": None},
        {"consumer_group": "h", "start_offset": 3},
    )
    sums = {row["consumer_group"]: row for row in start_sums(starts).to_pylist()}
    assert (sums["g"]["replayed_messages"], sums["g"]["skipped_messages"]) == (5, 3)
    assert (sums["h"]["replayed_messages"], sums["h"]["skipped_messages"]) == (None, None)


class Renamed:
    """Drops the first row of a group and adds one; leaves history 0 and group h alone."""

    def touches(self, history: int, cluster: str, consumer_group: str | None) -> bool:
        return history == 1 and consumer_group != "h"

    def edited(
        self, history: int, cluster: str, consumer_group: str | None, rows: Sequence[Row],
        group_row: Row | None,
    ) -> Edited:  # fmt: skip
        new = {"cluster": cluster, "consumer_group": consumer_group, "event_ms": 99, "sequence": 0}
        told = "settings" if group_row else "none"
        return Edited(tuple(rows[1:]), tuple(rows[:1]), (new,), (told,))


def test_every_history_gets_the_rows_and_only_touched_ones_change() -> None:
    fields = {
        field.name: field
        for name in (EVENTS, GROUPS)
        for field in INPUT_TABLES[name].arrow_schema()
    }
    schema = pa.schema([*fields.values(), (TABLE, pa.string()), (PART, pa.int32())])

    def row(group: str, at_ms: int | None, table: str = EVENTS) -> Row:
        named = {"cluster": "c", "consumer_group": group, "event_ms": at_ms, "sequence": at_ms}
        return named | {TABLE: table, PART: 0}

    given = [row(NOBODY, None, CLUSTER), row("g", 1), row("g", 2), row("g", None, GROUPS),
             row("h", 3)]  # fmt: skip
    columns = tuple(name for name in schema.names if name != PART)
    task = EditTask(Renamed(), 2, columns)
    batches = task(iter(pa.Table.from_pylist(given, schema).to_batches()))
    found = [r for batch in batches for r in batch.to_pylist()]
    assert sorted(
        (r["cluster"][-1], r["consumer_group"] or "-", r[TABLE], r["event_ms"] or 0)
        for r in found
        if r[TABLE] != WARNING
    ) == [
        ("0", "g", EVENTS, 1), ("0", "g", EVENTS, 2), ("0", "g", GROUPS, 0), ("0", "h", EVENTS, 3),
        ("1", "-", EVENTS, 99), ("1", "g", EVENTS, 2), ("1", "g", EVENTS, 99),
        ("1", "g", GROUPS, 0), ("1", "h", EVENTS, 3),
    ]  # fmt: skip
    assert sorted(r["source"] for r in found if r[TABLE] == WARNING) == ["none", "settings"]
