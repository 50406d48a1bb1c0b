"""A written audit: its findings, the content of its page, and the changes since the previous
audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict, cast

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit import counted_findings
from rebalance_core.audit.accepted_findings import ToAccept
from rebalance_core.audit.changes import (
    AuditedScope,
    Changes,
    Files,
    changes_since,
    fingerprint,
)
from rebalance_core.audit.counted_findings import Count, capped, count_findings, shown_first
from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.audit.not_looked_at import not_looked_at
from rebalance_core.audit.redact import Redaction
from rebalance_core.contracts import ALL_TABLES, AUDITED_TABLES
from rebalance_core.contracts.ledger import by_cause
from rebalance_core.contracts.table import batch_of_rows, rows_of_arrow
from rebalance_core.engine.fan_out import GROUP
from rebalance_core.engine.table_writer import GroupName, LedgerTotals, ReadWritten, Written
from rebalance_core.history.happenings import group_states, tonight_of
from rebalance_core.history.night import NightSpan, orphan_ms
from rebalance_core.model.verdicts import INFO, SYSTEM, UNKNOWN
from rebalance_core.process.previous_audit import PreviousAudit, all_rows
from rebalance_core.report.audit_report import (
    CHANGES_ON_PAGE,
    ROWS_OF_A_TIMELINE,
    TABLES_OF_GROUPS,
    Previous,
    ShownFinding,
    shown_finding,
)
from rebalance_core.report.tonight import NightDifference, Tonight, night_difference

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        CoverageRow,
        FindingsRow,
        GroupVerdictsRow,
        RowsByTable,
    )
    from rebalance_core.contracts.run_record import ReadFile


class UnknownGroup(TypedDict):
    """A group whose ownership is UNKNOWN, and what would settle it."""

    cluster: str
    consumer_group: str
    reason: str
    settled_by: str | None


@dataclass(frozen=True, eq=False)
class AuditResult:
    """The rows of ``findings`` and ``group_verdicts``, with the contract's columns.

    Attributes:
        findings: findings about groups, then about clusters.
        verdicts: a verdict per group.
        runs: the audit runs by cluster.
        incomplete: clusters with an incomplete collection.
        coverage: the coverage of the clusters' files; None if unknown.
    """

    findings: list[FindingsRow]
    verdicts: list[GroupVerdictsRow]
    runs: Mapping[str, AuditRun]
    incomplete: frozenset[str] = frozenset()
    coverage: pa.Table | None = None

    def not_looked_at(self) -> str:
        """Return a sentence per cluster about what its files do not cover; empty if unknown."""
        by_cluster: dict[str, list[CoverageRow]] = {}
        for row in [] if self.coverage is None else self.coverage.to_pylist():
            by_cluster.setdefault(row["cluster"], []).append(row)
        said = {name: not_looked_at(rows) for name, rows in sorted(by_cluster.items())}
        return " ".join(said.values() if len(said) < 2 else (f"{n}: {s}" for n, s in said.items()))

    def unknown(self) -> list[UnknownGroup]:
        """Return the groups whose ownership is UNKNOWN, with the file or command that would settle
        it.
        """
        return [
            {
                "cluster": row["cluster"],
                "consumer_group": row["consumer_group"],
                "reason": row["reason"],
                "settled_by": row["settled_by"],
            }
            for row in self.verdicts
            if row["verdict"] == UNKNOWN and row["reason"] != SYSTEM
        ]

    def counts(self) -> list[Count]:
        """Count findings by rule, severity and acceptance, in this order."""
        return count_findings(self.findings)

    def tables(self, findings_per_rule: int) -> dict[str, pa.Table]:
        """Return the tables as they are written, with ``coverage``.

        Args:
            findings_per_rule: maximum number of findings kept for each rule, open ones first, then
                by severity.
        """
        rows: dict[str, Sequence[Mapping[str, object]]] = {
            "findings": capped(self.findings, findings_per_rule),
            "group_verdicts": self.verdicts,
        }
        tables = {
            name: pa.Table.from_batches([batch_of_rows(AUDITED_TABLES[name], table_rows)])
            for name, table_rows in rows.items()
        }
        return tables if self.coverage is None else tables | {"coverage": self.coverage}


@dataclass(frozen=True, eq=False)
class AuditWritten:
    """An audit's findings and the tables that it wrote.

    Attributes:
        result: all findings and verdicts, not all of which may be written.
        ledger: the written tables, including those of the audit.
    """

    result: AuditResult
    ledger: Written[LedgerTotals]


def shown_findings(
    findings: Iterable[FindingsRow], limit: int, redaction: Redaction | None = None
) -> list[ShownFinding]:
    """Return the worst findings, open ones first."""
    rows = shown_first(findings, limit)
    return [shown_finding(redaction.finding(row) if redaction else row) for row in rows]


def _newest_rows(
    read: ReadWritten, name: str, groups: Sequence[GroupName], time: str
) -> list[dict[str, object]]:
    """Return the most recent rows of a few groups, at most `ROWS_OF_A_TIMELINE` for each."""
    kept: list[dict[str, object]] = []
    for group in groups:
        rows = read(name, group)
        if len(rows) > ROWS_OF_A_TIMELINE:
            key = [c for c in ALL_TABLES[name].key if c not in GROUP]
            order = [(time, "descending"), *((c, "ascending") for c in key)]
            newest = pc.sort_indices(rows, order, null_placement="at_start")
            rows = rows.take(newest[:ROWS_OF_A_TIMELINE])
        kept += rows_of_arrow(rows)
    return kept


@dataclass(frozen=True, eq=False)
class FinishedAudit:
    """All findings of a run, and those that were written.

    Attributes:
        result: the findings and verdicts.
        read: reads its tables as written.
        previous: the audit with which to compare, if any.
    """

    result: AuditResult
    read: ReadWritten
    previous: PreviousAudit | None = None

    def worst_groups(self, groups: int) -> list[tuple[str, str]]:
        """Return (cluster, consumer_group) of the groups with the worst findings."""
        return counted_findings.worst_groups(self.result.findings, groups)

    def to_accept(self) -> list[ToAccept]:
        """Return the open findings, for a file of acceptances."""
        return counted_findings.to_accept(self.result.findings)

    def changes(self, files: Iterable[ReadFile]) -> Changes | None:
        """Return the changes since the previous audit, or None without one.

        ``files`` is the input of this audit, for ``_run.json``.
        """
        before, result = self.previous, self.result
        if before is None:
            return None
        looked = AuditedScope.by(
            result.runs, result.incomplete, result.verdicts, result.findings, Files(files)
        )
        return changes_since(result.findings, before.earlier, looked, before.truncated, before.gone)

    def gone_lines(self, changes: Changes) -> str:
        """Return the fingerprints of findings that are gone, for the next run, one per line, in
        order.
        """
        gone = self.previous.gone if self.previous is not None else frozenset()
        back = {fingerprint(row) for row in (*changes.reopened, *changes.still)}
        now = (gone | {fingerprint(row) for row in (*changes.gone, *changes.healed)}) - back
        return "".join(f"{line}\n" for line in sorted(now))

    def shown_changes(
        self, changes: Changes | None, redaction: Redaction | None
    ) -> Previous | None:
        """Return the changes as the page shows them, or None without a previous audit.

        ``redaction`` replaces the client names in earlier findings; None keeps them.
        """
        if self.previous is None or changes is None:
            return None
        unseen = [earlier.finding for earlier in changes.not_looked_at]
        return Previous(
            time_ms=self.previous.end_ms,
            new=tuple(shown_findings((*changes.new, *changes.reopened), CHANGES_ON_PAGE)),
            gone=tuple(shown_findings(changes.gone, CHANGES_ON_PAGE, redaction)),
            not_looked_at=tuple(shown_findings(unseen, CHANGES_ON_PAGE, redaction)),
            counts=changes.counts,
            healed=tuple(shown_findings(changes.healed, CHANGES_ON_PAGE)),
            difference=self._difference(self.previous),
        )

    def _difference(self, previous: PreviousAudit) -> NightDifference:
        """Return the groups whose state differs, in the clusters that both audits cover."""
        if previous.groups is None:
            return NightDifference()
        both = self.result.runs.keys() & previous.nights.keys()
        states = (previous.groups, group_states(all_rows(self.read)))
        before, now = ({n: s for n, s in one.items() if n[0] in both} for one in states)
        return night_difference(before, now)

    def tonight(self) -> Tonight:
        """Return the events of the judged night."""
        return tonight_of(self.result.runs, all_rows(self.read))

    def truncated(self) -> Sequence[str]:
        """Return the rules for which the previous audit did not keep every finding."""
        return self.previous.truncated if self.previous else ()

    def shown(self, findings: int, *, with_info: bool) -> list[ShownFinding]:
        """Return the worst findings as written."""
        rows = (row for row in self._findings if with_info or row["severity"] != INFO)
        return shown_findings(rows, findings)

    def top(self, causes: int) -> list[ShownFinding]:
        """Return the most severe causes above INFO as written, each followed by its consequences.

        Args:
            causes: the maximum number of causes, and of consequences per cause.
        """
        rows = [row for row in self._findings if row["severity"] != INFO]
        ordered = shown_findings(rows, len(rows))
        lists = by_cause((finding.fingerprint, finding.caused_by) for finding in ordered)
        return [ordered[place] for places in lists[:causes] for place in places[: causes + 1]]

    def rows_of_groups(self, groups: Sequence[GroupName]) -> RowsByTable:
        """Return the rows of `TABLES_OF_GROUPS` as written, for the page."""
        tables = TABLES_OF_GROUPS.items()
        rows = {name: _newest_rows(self.read, name, groups, time) for name, time in tables}
        return cast("RowsByTable", rows)

    def stalled_queues(self) -> dict[GroupName, int]:
        """Return, by group, the number of queues that make no progress while messages arrive."""
        rows = self.read("queue_progress", None, (*GROUP, "still_since_ms"))
        rows = rows.filter(pc.is_valid(rows["still_since_ms"]))
        counts = rows.group_by(list(GROUP)).aggregate([("still_since_ms", "count")])
        return {
            (row["cluster"], row["consumer_group"]): row["still_since_ms_count"]
            for row in counts.to_pylist()
        }

    def orphan_ms(self) -> dict[GroupName, int]:
        """Return, by group, queues x ms of the night without an owner."""
        nights = {
            cluster: NightSpan.of(run.start_ms, run.night_ms, run.end_ms)
            for cluster, run in self.result.runs.items()
        }
        return orphan_ms(all_rows(self.read), nights)

    @cached_property
    def _findings(self) -> list[FindingsRow]:
        return rows_of_arrow(self.read("findings", None))
