"""What a summary tells of a ledger, counted while its rows go by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.conform import issue_counts
from rebalance_core.engine.fan_out import GROUP
from rebalance_core.engine.ledger_pass import REPLAYED
from rebalance_core.model.statuses import FAILED

GroupName = tuple[str, str]
_STATE = ("status", "queues", "orphaned", "shared")


class LedgerFacts:
    """The numbers of the summary and the groups in trouble; rows of one batch hold whole groups."""

    def __init__(self) -> None:
        self._groups: dict[GroupName, dict[str, Any]] = {}
        self._moved: Counter[GroupName] = Counter()
        self._failed: Counter[GroupName] = Counter()
        self.rejected: Counter[str] = Counter()
        """How often each issue code occurs; a row may have several."""
        self.replay_reasons: Counter[str] = Counter()
        """How many groups the replay took instead of the kernels, by reason."""

    def add(self, table: str, rows: pa.RecordBatch) -> None:
        """Count some rows of a table of the ledger, or of `REPLAYED`."""
        if not rows.num_rows:
            return
        if table == "epochs":
            self._add_epochs(rows)
        elif table == "group_metrics":
            self._moved.update(_sums(rows.filter(pc.is_null(rows["topic"])), "moved"))
        elif table == "pull_starts":
            self._failed.update(_sums(rows.filter(pc.equal(rows["status"], FAILED)), None))
        elif table == "rejected":
            self.rejected.update(issue_counts(rows))
        elif table == REPLAYED.name:
            self.replay_reasons.update(_counts(rows["reason"]))

    def merge(self, other: LedgerFacts) -> None:
        """Add what was counted of other groups, or of other parts of the same."""
        self._groups |= other._groups
        self._moved += other._moved
        self._failed += other._failed
        self.rejected += other.rejected
        self.replay_reasons += other.replay_reasons

    def totals(self, worst: int) -> dict[str, Any]:
        """The totals over all groups, and the ``worst`` groups.

        Those with the most orphaned and shared queues and failed starts come first, then those
        that moved most.
        """
        groups = [self._row(name, state) for name, state in self._groups.items()]
        totals: dict[str, Any] = {"groups": len(groups)}
        for name in ("epochs", "moved", "orphaned", "shared", "failed_starts"):
            totals[name] = sum(group[name] for group in groups)
        totals["first_ms"] = min((group["first_ms"] for group in groups), default=None)
        totals["last_ms"] = max((group["last_ms"] for group in groups), default=None)
        listed = sorted(groups, key=_gravest_first)[:worst]
        return totals | {"worst_groups": listed}

    def _row(self, name: GroupName, state: Mapping[str, Any]) -> dict[str, Any]:
        counted = {"moved": self._moved[name], "failed_starts": self._failed[name]}
        return dict(zip(GROUP, name, strict=True)) | counted | dict(state)

    def _add_epochs(self, rows: pa.RecordBatch) -> None:
        names, group = _names(rows)
        epoch = rows["epoch"].to_numpy()
        order = np.lexsort((epoch, group))
        ends = np.flatnonzero(np.append(np.diff(group[order]) != 0, True))
        last = pa.array(order[ends])
        first = pa.array(order[np.append(0, ends[:-1] + 1)])
        columns = {name: rows[name].take(last).to_pylist() for name in _STATE}
        columns["epochs"] = np.diff(ends, prepend=-1).tolist()
        columns["first_ms"] = rows["from_ms"].take(first).to_pylist()
        columns["last_ms"] = rows["from_ms"].take(last).to_pylist()
        for place, number in enumerate(group[order[ends]].tolist()):
            self._groups[names[number]] = {c: values[place] for c, values in columns.items()}


def _gravest_first(group: Mapping[str, Any]) -> tuple[Any, ...]:
    trouble = group["orphaned"] + group["shared"] + group["failed_starts"]
    return (-trouble, -group["moved"], *(group[name] for name in GROUP))


def _names(rows: pa.RecordBatch) -> tuple[list[GroupName], np.ndarray]:
    """The groups of the rows, and the number of each row's."""
    keys = pa.table([rows[name] for name in GROUP], names=list(GROUP))
    numbered = keys.append_column("_row", pa.array(np.arange(rows.num_rows)))
    found = numbered.group_by(list(GROUP), use_threads=False).aggregate([("_row", "list")])
    number = np.zeros(rows.num_rows, np.int64)
    lists = found["_row_list"].combine_chunks()
    lengths = pc.list_value_length(lists).to_numpy()
    number[lists.flatten().to_numpy()] = np.repeat(np.arange(len(found)), lengths)
    return list(zip(*(found[name].to_pylist() for name in GROUP), strict=True)), number


def _sums(rows: pa.RecordBatch, column: str | None) -> dict[GroupName, int]:
    """The sum of a column by group; None: how many rows."""
    table = pa.Table.from_batches([rows])
    counted = table.group_by(list(GROUP), use_threads=False).aggregate(
        [([], "count_all") if column is None else (column, "sum")]
    )
    *names, sums = (
        counted[name].to_pylist()
        for name in (*GROUP, "count_all" if column is None else f"{column}_sum")
    )
    return {
        (cluster, group): sums[i] for i, (cluster, group) in enumerate(zip(*names, strict=True))
    }


def _counts(words: pa.Array) -> dict[str, int]:
    return {each["values"]: each["counts"] for each in pc.value_counts(words).to_pylist()}
