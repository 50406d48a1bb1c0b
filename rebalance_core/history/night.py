"""Reduces the audit of a cluster to the rows that history keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.changes import AuditedScope, Files, truncated_rules
from rebalance_core.audit.completeness import COLLECTION_INCOMPLETE
from rebalance_core.contracts.history import GROUP_NIGHTS, OF_GROUP, OF_HOST
from rebalance_core.contracts.ledger import FINDINGS
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.history.flaps import churn_of, comings_and_goings, hosts_of
from rebalance_core.history.runs import Run
from rebalance_core.model.events import CONSUMER_LOST
from rebalance_core.model.verdicts import EMPTY, ERROR, INFO, WARNING
from rebalance_core.model.verdicts import OK as START_OK

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow, NightsRow
    from rebalance_core.contracts.run_record import AuditRecord

_GROUP = ["cluster", "consumer_group"]
_COUNTS = (
    "members_first", "members_last", "joins", "leaves", "losses", "epochs", "transient", "moved",
    "busiest", "idle", "orphan_ms", "shared_ms",
)  # fmt: skip


ReadColumns = Callable[[str, Sequence[str]], pa.Table]
"""Returns all rows of a named table, with the given columns."""

_COLUMNS = {
    "group_verdicts": ("verdict", "reason", "unasked", "behind"),
    "epochs": (
        "epoch", "from_ms", "to_ms", "causes", "members", "orphaned", "shared", "status",
        "transient",
    ),
    "group_metrics": (
        "epoch", "topic", "moved", "minimum_moves", "max_queues", "idle_members",
    ),
    "pull_starts": (
        "change_ms", "start_offset", "corrected_offset", "stored_offset", "skipped", "status",
    ),
    "memberships": ("client_id", "channel_id", "from_epoch", "to_epoch", "from_ms", "to_ms"),
}  # fmt: skip
"""Columns read from the ledger, besides cluster and group."""
READ_TABLES = (*_COLUMNS, FINDINGS.name)
"""Tables of an audit from which a night is built."""


_BEFORE_ALL_MS, _AFTER_ALL_MS = -(1 << 62), 1 << 62


@dataclass(frozen=True)
class NightSpan:
    """The period of a night; an event counts only in the night that contains it.

    Attributes:
        after_ms: the end of the previous night, exclusive.
        end_ms: its end, inclusive.
    """

    after_ms: int = _BEFORE_ALL_MS
    end_ms: int = _AFTER_ALL_MS

    @classmethod
    def of(cls, start_ms: int, night_ms: int, end_ms: int) -> NightSpan:
        """Return the night of an audit; all that its files show if it has no earlier night."""
        return cls(night_ms if night_ms > start_ms else _BEFORE_ALL_MS, end_ms)

    def has(self, times: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return whether each time lies in the night."""
        return pc.and_(pc.greater(times, self.after_ms), pc.less_equal(times, self.end_ms))

    def lasts(self, from_ms: pa.ChunkedArray, to_ms: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return how long each stretch overlaps the night; a null ``to_ms`` extends to its end."""
        begin = pc.max_element_wise(from_ms, self.after_ms)
        end = pc.min_element_wise(pc.fill_null(to_ms, self.end_ms), self.end_ms)
        return pc.max_element_wise(pc.subtract(end, begin), 0)

    def touches(self, from_ms: pa.ChunkedArray, to_ms: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return whether each stretch overlaps the night."""
        over = pc.less_equal(pc.fill_null(to_ms, _AFTER_ALL_MS), self.after_ms)
        return pc.and_(pc.invert(over), pc.less_equal(from_ms, self.end_ms))


def _span(audit: AuditRecord, before_ms: int | None) -> NightSpan:
    """Return the night of a run, which begins no earlier than the previous night ends."""
    begins = [audit.get("night_ms", audit["start_ms"]), before_ms or _BEFORE_ALL_MS]
    return NightSpan.of(audit["start_ms"], max(begins), audit["end_ms"])


@dataclass(frozen=True, eq=False)
class Night:
    """The audit of a cluster in a night.

    Attributes:
        row: the row of ``nights``.
        groups: rows of ``group_nights``, without ``settle_p99_ms``.
        churn: see `flaps.churn_of`.
        names: the groups and hosts present, by kind of subject.
        findings: all kept rows.
        looked: what it checked.
        files: the files it read.
        truncated: rules of which it did not keep all findings.
        span: its period.
    """

    row: NightsRow
    groups: pa.Table
    churn: pa.Table
    names: Mapping[str, set[str]]
    findings: Sequence[FindingsRow]
    looked: AuditedScope
    files: Files
    truncated: Sequence[str]
    span: NightSpan = NightSpan()


def night_of(run: Run, cluster: str, read: ReadColumns, before_ms: int | None = None) -> Night:
    """Read the audit of a cluster.

    Args:
        run: the audit.
        cluster: one of the clusters that it audited.
        read: reads its tables.
        before_ms: the end of the previous night; None for the first.
    """
    audit = run.clusters[cluster]
    span = _span(audit, before_ms)

    def rows(table: str) -> pa.Table:
        columns = [*_GROUP, *_COLUMNS[table]] if table in _COLUMNS else FINDINGS.column_names
        whole = read(table, columns)
        return whole.filter(pc.equal(whole["cluster"], cluster))

    findings: list[FindingsRow] = rows_of_arrow(rows("findings"))
    verdicts = rows("group_verdicts")
    missing = sorted(
        row["summary"] for row in findings if row["rule_id"] == COLLECTION_INCOMPLETE.rule_id
    )
    files = Files(run.record.get("files") or [])
    looked = AuditedScope.by(
        [cluster],
        [cluster] if missing else [],
        rows_of_arrow(verdicts),
        findings,
        files,
    )
    row = _night_row(run, cluster, audit, span, missing)
    epochs, memberships = rows("epochs"), rows("memberships")
    changes = comings_and_goings(memberships)
    changes = changes.filter(span.has(changes["at_ms"]))
    starts = rows("pull_starts")
    there = memberships.filter(span.touches(memberships["from_ms"], memberships["to_ms"]))
    parts = [
        _of_epochs(epochs, span),
        _of_metrics(rows("group_metrics"), epochs, span),
        _of_starts(starts.filter(span.has(starts["change_ms"]))),
        _of_members(changes, epochs),
    ]
    return Night(
        row=row,
        groups=_group_rows(verdicts, parts, row),
        churn=churn_of(changes),
        names={
            OF_GROUP: set(verdicts["consumer_group"].to_pylist()),
            OF_HOST: set(hosts_of(there["client_id"]).unique().to_pylist()),
        },
        findings=findings,
        looked=looked,
        files=files,
        truncated=truncated_rules(
            Counter(finding["rule_id"] for finding in findings), audit["findings"]
        ),
        span=span,
    )


def _night_row(
    run: Run, cluster: str, audit: AuditRecord, span: NightSpan, missing: list[str]
) -> NightsRow:
    by_severity: Counter[str] = Counter()
    for counts in audit["findings"].values():
        by_severity.update(counts)
    return {
        "cluster": cluster,
        "end_ms": audit["end_ms"],
        "run_id": run.run_id,
        "start_ms": max(audit["start_ms"], span.after_ms),
        "verdict": audit["verdict"],
        "complete": not missing,
        "missing": missing,
        "errors": by_severity[ERROR],
        "warnings": by_severity[WARNING],
        "infos": by_severity[INFO],
        "groups": dict(audit["groups"]),
        "library_version": run.record["library_version"],
    }


def _group_rows(verdicts: pa.Table, parts: Iterable[pa.Table], night: NightsRow) -> pa.Table:
    """Combine the facts about each group that has a verdict."""
    rows = verdicts.select([*_GROUP, "verdict", "reason", "behind"])
    for part in parts:
        rows = rows.join(part, keys=_GROUP, join_type="left outer")
    rows = rows.sort_by([(name, "ascending") for name in _GROUP])
    made = {name: rows[name] for name in rows.column_names}
    for name in _COUNTS:
        made[name] = pc.fill_null(made[name], 0)
    made["reason"] = pc.if_else(pc.equal(made["reason"], ""), None, made["reason"])
    made["end_ms"] = pa.array([night["end_ms"]] * len(rows), pa.int64())
    made["run_id"] = pa.array([night["run_id"]] * len(rows), pa.string())
    schema = GROUP_NIGHTS.arrow_schema()
    columns = [
        made[field.name].cast(field.type) if field.name in made else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _grouped(rows: pa.Table, *sums: tuple[str, str, str]) -> pa.Table:
    """Aggregate rows by group, given tuples of (column, function, name of the result)."""
    made = rows.group_by(_GROUP, use_threads=False).aggregate(
        [column_sum[:2] for column_sum in sums]
    )
    return made.rename_columns({f"{column}_{function}": name for column, function, name in sums})


def _of_epochs(epochs: pa.Table, night: NightSpan) -> pa.Table:
    """Return the number of epochs that began and the duration of states in the night, and the
    members at its start and end.
    """
    rows = epochs.filter(night.touches(epochs["from_ms"], epochs["to_ms"]))
    rows = rows.sort_by([(name, "ascending") for name in (*_GROUP, "epoch")])
    rows = _with_queue_ms(rows, night, "orphaned", "shared")
    ended = pc.fill_null(night.has(rows["to_ms"]), False)
    passing = pc.and_(rows["transient"], ended)
    rows = rows.append_column("passing", passing.cast(pa.int32()))
    rows = rows.append_column("begun", night.has(rows["from_ms"]).cast(pa.int32()))
    rows = rows.append_column("last", rows["members"])
    return _grouped(
        rows,
        ("begun", "sum", "epochs"),
        ("members", "first", "members_first"),
        ("last", "last", "members_last"),
        ("passing", "sum", "transient"),
        ("orphaned_ms", "sum", "orphan_ms"),
        ("shared_ms", "sum", "shared_ms"),
    )


def _with_queue_ms(epochs: pa.Table, night: NightSpan, *names: str) -> pa.Table:
    """Return the epochs with queues x ms in the night by state of queues, as ``NAME_ms``."""
    lasts = night.lasts(epochs["from_ms"], epochs["to_ms"])
    lasts = pc.if_else(pc.equal(epochs["status"], EMPTY), 0, lasts)
    for name in names:
        times = pc.multiply(epochs[name].cast(pa.int64()), lasts)
        epochs = epochs.append_column(f"{name}_ms", times)
    return epochs


def orphan_ms(read: ReadColumns, nights: Mapping[str, NightSpan]) -> dict[tuple[str, str], int]:
    """Return, by group, queues x ms without an owner in the night of its cluster, without groups
    that had none.
    """
    epochs = read("epochs", [*_GROUP, "from_ms", "to_ms", "status", "orphaned"])
    made: dict[tuple[str, str], int] = {}
    for cluster, night in nights.items():
        rows = epochs.filter(pc.equal(epochs["cluster"], cluster))
        sums = _grouped(_with_queue_ms(rows, night, "orphaned"), ("orphaned_ms", "sum", "ms"))
        for row in sums.filter(pc.greater(sums["ms"], 0)).to_pylist():
            made[cluster, row["consumer_group"]] = row["ms"]
    return made


def _of_metrics(metrics: pa.Table, epochs: pa.Table, night: NightSpan) -> pa.Table:
    """Return the night's moves, except in a group's first epoch, and the balance at its end."""
    rows = metrics.filter(pc.is_null(metrics["topic"]))
    began = epochs.select([*_GROUP, "epoch", "from_ms"])
    rows = rows.join(began, keys=[*_GROUP, "epoch"], join_type="left outer")
    rows = rows.sort_by([(name, "ascending") for name in (*_GROUP, "epoch")])
    later = pc.and_(pc.greater(rows["epoch"], 0), night.has(rows["from_ms"]))
    moved = pc.if_else(later, rows["moved"], 0)
    least = pc.if_else(later, rows["minimum_moves"], 0)
    unknown = pc.and_(pc.is_null(least), pc.greater(moved, 0))
    numbers = {"moved": moved, "least": pc.fill_null(least, 0), "unknown": unknown.cast(pa.int32())}
    rows = rows.select([*_GROUP, "max_queues", "idle_members"])
    for name, values in numbers.items():
        rows = rows.append_column(name, values.cast(pa.int64()))
    made = _grouped(
        rows,
        ("moved", "sum", "moved"),
        ("least", "sum", "minimum_moves"),
        ("unknown", "sum", "unknown"),
        ("max_queues", "last", "busiest"),
        ("idle_members", "last", "idle"),
    )
    minimum = pc.if_else(pc.equal(made["unknown"], 0), made["minimum_moves"], None)
    return made.drop_columns(["unknown", "minimum_moves"]).append_column("minimum_moves", minimum)


def _of_starts(starts: pa.Table) -> pa.Table:
    """Return the worst known start of each group."""
    rows = starts.filter(pc.equal(starts["status"], START_OK))
    begun = pc.coalesce(rows["corrected_offset"], rows["start_offset"])
    again = pc.max_element_wise(pc.subtract(rows["stored_offset"], begun), 0, skip_nulls=False)
    rows = rows.append_column("again", again)
    return _grouped(rows, ("skipped", "max", "worst_skipped"), ("again", "max", "worst_replayed"))


def _of_members(changes: pa.Table, epochs: pa.Table) -> pa.Table:
    """Return joins, leaves and losses; in an epoch with leaves and losses, all ends count as
    losses.
    """
    causes = epochs["causes"].combine_chunks()
    lost_rows = pc.list_parent_indices(causes).filter(
        pc.equal(pc.list_flatten(causes), CONSUMER_LOST)
    )
    lost = np.zeros(len(epochs), bool)
    lost[np.asarray(lost_rows)] = True
    of_epoch = epochs.select([*_GROUP, "epoch"]).append_column("lost", pa.array(lost))
    rows = changes.join(of_epoch, keys=[*_GROUP, "epoch"], join_type="left outer")
    joined, others = rows["joined"], pc.fill_null(rows["lost"], False)
    numbers = {
        "joins": joined,
        "leaves": pc.and_(pc.invert(joined), pc.invert(others)),
        "losses": pc.and_(pc.invert(joined), others),
    }
    rows = rows.select(_GROUP)
    for name, values in numbers.items():
        rows = rows.append_column(name, values.cast(pa.int32()))
    return _grouped(rows, *((name, "sum", name) for name in numbers))
