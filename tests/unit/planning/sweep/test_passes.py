"""Arrow rows of the passes, without a JVM: what counts, and what is summed."""

from typing import Any

import pyarrow as pa

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.planning.sweep.passes import counted, marked, start_sums, step_rows

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
    steps = marked(step_rows(epochs, metrics, ledger("pop_metrics")), {"c\x1f1": 20}).to_pylist()
    assert [(s["epoch"], s["change_ms"], s["moved"], s["counted"]) for s in steps] == [
        (0, 10, 8, False),
        (1, 20, 9, True),
    ]
    assert [s["amplification"] for s in steps] == [2.0, None]  # in the second nobody reads a queue


def test_shared_topics_of_an_epoch_add_up() -> None:
    epochs = ledger(
        "epochs",
        *(
            {"epoch": n, "from_ms": n, "causes": [], "orphaned": 0, "pop_queues": q}
            for n, q in ((2, 0), (1, 12), (0, 0))
        ),
    )
    metrics = ledger("group_metrics", *({"epoch": n, "topic": None} for n in range(3)))
    shared = ledger(
        "pop_metrics",
        {"epoch": 1, "topic": "T", "queues": 8, "min_clients_per_queue": 2,
         "max_clients_per_queue": 3, "unreached": 0},
        {"epoch": 1, "topic": "U", "queues": 4, "min_clients_per_queue": 0,
         "max_clients_per_queue": 1, "unreached": 2},
        {"epoch": 2, "topic": "T", "queues": 0, "min_clients_per_queue": 0,
         "max_clients_per_queue": 0, "unreached": 0},
    )  # fmt: skip
    names = ("pop_queues", "min_clients_per_queue", "max_clients_per_queue", "unreached")
    steps = step_rows(epochs, metrics, shared).select(names).to_pylist()
    assert [tuple(step.values()) for step in steps] == [
        (0, None, None, None),
        (12, 0, 3, 2),
        (0, None, None, None),
    ]


def test_without_an_edit_everything_after_the_first_epoch_counts() -> None:
    rows = pa.table({"cluster": ["c\x1f0", "c\x1f0"], "epoch": [0, 1], "change_ms": [5, 6]})
    assert counted(rows, {"c\x1f1": 0}).to_pylist() == [False, True]


def test_messages_are_summed_and_unknown_ones_stay_unknown() -> None:
    starts = ledger(
        "pull_starts",
        {"start_offset": 0, "stored_offset": 9, "max_offset": 5, "skipped": 0, "rule": "STORED"},
        {
            "start_offset": 9,
            "corrected_offset": 7,
            "stored_offset": 8,
            "skipped": 3,
            "rule": "MAX_OFFSET",
        },
        {"start_offset": 9, "stored_offset": 4, "skipped": None},
        {"start_offset": 11, "stored_offset": 9, "skipped": 2, "rule": "STORED"},
        {"consumer_group": "h", "start_offset": 3},
        {"consumer_group": "i", "start_offset": 9, "stored_offset": 4, "skipped": 5},
        {"consumer_group": "i", "status": "UNKNOWN"},
    )
    sums = {row["consumer_group"]: row for row in start_sums(starts).to_pylist()}
    assert (sums["g"]["rewound_messages"], sums["g"]["skipped_messages"]) == (5, 3)
    for group in ("h", "i"):
        found = sums[group]
        assert (found["rewound_messages"], found["skipped_messages"]) == (None, None)


def test_no_message_is_read_twice_or_lost_by_who_starts_in_a_group_that_broadcasts() -> None:
    row = {"start_offset": 0, "stored_offset": 617_205_744, "skipped": 0, "rule": "STORED"}
    starts = ledger("pull_starts", row, row | {"consumer_group": "h"})
    (cluster,) = {each["cluster"] for each in starts.to_pylist()}
    sums = {row["consumer_group"]: row for row in start_sums(starts, {(cluster, "g")}).to_pylist()}
    assert (sums["g"]["rewound_messages"], sums["g"]["skipped_messages"]) == (None, None)
    assert sums["h"]["rewound_messages"] == 617_205_744
