"""Arrow rows of the passes, without a JVM: what counts, and what is summed."""

from typing import Any

import pyarrow as pa

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.planning.sweep.sweep_rows import counted, marked, start_sums, step_rows

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
