"""Judges the clusters first, then each group from the rows of its ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict, cast

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.accepted_findings import Acceptance
from rebalance_core.audit.causes import with_causes
from rebalance_core.audit.changes import fingerprint
from rebalance_core.audit.cluster_findings import ClusterFindings, cluster_findings
from rebalance_core.audit.finding_rows import of_cluster_row
from rebalance_core.audit.findings import GroupRules
from rebalance_core.audit.group_snapshot import grouped
from rebalance_core.audit.incomplete_groups import MissingGroups
from rebalance_core.audit.night import NIGHT, NightBegin
from rebalance_core.checks.packed_rows import pack, unpack
from rebalance_core.contracts import (
    AUDITED_TABLES,
    LEDGER_TABLES,
    PROGRESS_TABLES,
    SIMULATED_TABLES,
)
from rebalance_core.contracts.table import batch_of_rows, rows_of_arrow
from rebalance_core.engine.fan_out import GroupedRows, fan_out, with_empty_events_if_missing
from rebalance_core.engine.ledger_pass import (
    LedgerRows,
    ledger_pass,
    within,
)
from rebalance_core.engine.options import SimulationOptions, group_pattern, matches
from rebalance_core.engine.table_writer import LedgerFacts
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.process.audited import AuditResult
from rebalance_core.process.cluster_tables import ClusterTables
from rebalance_core.process.covered_starts import CoveredStarts
from rebalance_core.process.group_snapshots import (
    GroupKeyedRows,
    by_group,
    group_tables,
    names_of,
    snapshots_of,
)
from rebalance_core.process.queue_progress import with_expiry, with_holders
from rebalance_core.process.redacted_rows import redacted, redacted_coverage
from rebalance_core.process.undated_moves import UndatedMoves, changed_unseen
from rebalance_core.process.unknown_owners import UnknownOwners
from rebalance_core.process.widened_starts import STARTS, WidenedStarts

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow, GroupVerdictsRow


FINDINGS, PROGRESS = "findings", "queue_progress"
FOUND_TABLES = (FINDINGS, "group_verdicts")
"""The tables to which judging adds rows."""


class FoundRows(TypedDict):
    """Rows of `FOUND_TABLES` about groups."""

    findings: list[FindingsRow]
    group_verdicts: list[GroupVerdictsRow]


@dataclass(frozen=True)
class AuditedClusters:
    """The judged clusters, and the rules for their groups.

    Attributes:
        clusters: what is known about the clusters, with their findings.
        of_ingest: findings of ingest that do not concern groups.
        groups: the rules for single groups, which every task receives.
        coverage: rows of ``coverage``, as read.
    """

    clusters: ClusterFindings
    of_ingest: list[FindingsRow]
    groups: GroupRules
    coverage: pa.Table

    def result(
        self, group_findings: FoundRows, options: SimulationOptions | None = None
    ) -> AuditResult:
        """Return the findings of all groups and clusters.

        Args:
            group_findings: the findings of all groups (`run_group_rules`).
            options: findings entirely outside its ``from_ms`` to ``to_ms`` are excluded.
        """
        verdicts = group_findings["group_verdicts"]
        of_clusters = self.clusters.all_findings(
            self.of_ingest,
            group_findings["findings"],
            _unknown_groups(verdicts),
            self.groups.accepted,
            self.groups.salt,
        )
        findings = with_causes(group_findings["findings"] + list(map(_named, of_clusters)))
        if options is not None:
            findings = [row for row in findings if _touches(row, options)]
        coverage = self.coverage
        if self.groups.salt is not None:
            coverage = redacted_coverage(coverage, self.groups.salt)
        return AuditResult(
            findings, verdicts, self.clusters.runs, self.clusters.incomplete, coverage
        )


def audit_clusters(
    clusters: ClusterTables,
    *,
    accepted: tuple[Acceptance, ...] = (),
    stale_hours: float = 6.0,
    not_before_ms: int | None = None,
    redact_salt: str | None = None,
    night: NightBegin = NIGHT,
    lost_kinds: tuple[str, ...] = (),
) -> AuditedClusters:
    """Judge the clusters.

    Args:
        clusters: the rows about clusters.
        accepted: the valid acceptances.
        stale_hours: evidence older than this at the end no longer shows the current state.
        not_before_ms: a collection that ends before this is incomplete; None allows any age.
        redact_salt: the salt of the names that replace client ids; None shows the ids.
        night: when the night of each cluster begins.
        lost_kinds: kinds of files that the previous run read but this run lacks.
    """
    group_findings = cluster_findings(
        clusters.by_cluster(), stale_hours, not_before_ms, night, lost_kinds
    )
    of_ingest: list[FindingsRow] = rows_of_arrow(clusters.findings)
    by_cluster = grouped(of_ingest, lambda row: row["cluster"])
    runs = {
        name: replace(run, changed_unseen=changed_unseen(by_cluster.get(name, ())))
        for name, run in group_findings.runs.items()
    }
    groups = GroupRules(runs, accepted, redact_salt)
    return AuditedClusters(group_findings, of_ingest, groups, clusters.coverage)


def _touches(finding: FindingsRow, options: SimulationOptions) -> bool:
    """Return True if the finding overlaps the time range in the options."""
    first, last, begin, end = (
        finding["first_ms"],
        finding["last_ms"],
        options.from_ms,
        options.to_ms,
    )
    before = last is not None and begin is not None and last < begin
    return not before and (first is None or end is None or first < end)


def run_group_rules(
    rules: GroupRules, snapshots: Iterable[GroupKeyedRows], wanted: str | None = None
) -> FoundRows:
    """Run the rules on groups.

    Args:
        rules: the rules for single groups.
        snapshots: the groups with their rows.
        wanted: a glob of the groups to judge; None for all.
    """
    group_findings: FoundRows = {"findings": [], "group_verdicts": []}
    for cluster, group, rows in snapshots:
        if wanted is not None and not matches(wanted, group):
            continue
        judged = rules(cluster, group, rows)
        findings = (of_cluster_row(cluster, row) for row in judged["findings"])
        group_findings["findings"] += map(_named, findings)
        for verdict in judged["group_verdicts"]:
            group_findings["group_verdicts"].append({**verdict, "cluster": cluster})
    return group_findings


def _named(finding: FindingsRow) -> FindingsRow:
    """Return the finding with its fingerprint."""
    return {**finding, "fingerprint": fingerprint(finding)}


def _unknown_groups(
    verdicts: Iterable[GroupVerdictsRow],
) -> dict[str, tuple[list[MissingGroups], int]]:
    """Return, by cluster, the groups with missing evidence, and how many groups were compared."""
    by_cluster: dict[str, tuple[list[MissingGroups], int]] = {}
    for row in verdicts:
        rows, compared = by_cluster.get(row["cluster"], ([], 0))
        rows.append(
            {
                "verdict": row["verdict"],
                "reason": row["reason"],
                "unasked": row["unasked"],
                "groups": 1,
                "names": [row["consumer_group"]],
                "dumps": row["dumps"],
            }
        )
        by_cluster[row["cluster"]] = (rows, compared + (row["looks"] > 0))
    return by_cluster


class GroupFindings:
    """Findings and verdicts of groups, in packed form."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[bytes]] = {name: [] for name in FOUND_TABLES}

    def add(self, group_findings: FoundRows) -> None:
        """Add the findings of further groups."""
        tables: dict[str, Sequence[Mapping[str, object]]] = {
            "findings": group_findings["findings"],
            "group_verdicts": group_findings["group_verdicts"],
        }
        for name, rows in tables.items():
            if rows:
                batch = batch_of_rows(AUDITED_TABLES[name], rows)
                self._chunks[name].append(pack(pa.Table.from_batches([batch])))

    def merge(self, other: GroupFindings) -> None:
        """Add the findings of groups that were judged elsewhere."""
        for name, chunks in other._chunks.items():
            self._chunks[name] += chunks

    def rows(self) -> FoundRows:
        """Return the rows of all groups."""
        tables: dict[str, list[FindingsRow | GroupVerdictsRow]] = {}
        for name, chunks in self._chunks.items():
            tables[name] = []
            for chunk in chunks:
                tables[name] += rows_of_arrow(unpack(chunk))
        return cast("FoundRows", tables)


STREAMED_TABLES = LEDGER_TABLES | PROGRESS_TABLES
"""Tables that are written while their rows are computed."""


class PartialAudit:
    """The facts and findings of a task's groups, besides the rows of their ledger."""

    def __init__(self) -> None:
        self.facts = LedgerFacts()
        self.group_findings = GroupFindings()

    def merge(self, other: PartialAudit) -> None:
        """Add the facts of other groups."""
        self.facts.merge(other.facts)
        self.group_findings.merge(other.group_findings)

    def shown(self, made: LedgerRows, salt: str | None) -> LedgerRows:
        """Yield the rows of the ledger in their written form, and count them.

        Args:
            made: rows of the ledger and of `engine.replayed.REPLAYED`.
            salt: the salt of the names that replace client ids; None to write the ids.
        """
        for name, rows in made:
            self.facts.add(name, rows)
            if name in STREAMED_TABLES:
                yield name, rows if salt is None else redacted(rows, salt)


ROWS_AT_ONCE = 4_000
"""Groups are judged together once they have this many input rows; until then their ledger, which
may have a hundred times as many, stays in memory.
"""


@dataclass(frozen=True, slots=True)
class AuditPass:
    """Simulates and audits groups; sent to every task.

    Attributes:
        rules: the rules for single groups.
        engine: see `EngineOptions`.
        options: its ``group``, ``from_ms`` and ``to_ms`` select what is judged and written.
    """

    rules: GroupRules
    engine: EngineOptions
    options: SimulationOptions = field(default_factory=SimulationOptions)

    def rows(
        self,
        tables: Mapping[str, pa.Table],
        group_findings: GroupFindings,
        progress: Callable[[int, int], object] | None = None,
    ) -> LedgerRows:
        """Yield the rows of all ledger tables, names encoded (`ledger_pass`), and of
        `engine.replayed.REPLAYED`.

        Memory: the tables, and the ledger of groups with `ROWS_AT_ONCE` input rows in total.

        Args:
            tables: all used rows of input tables, observed tables, findings and ``propagation``
                that concern these groups, by table name. A table without rows may be missing.
            group_findings: collects the findings while the rows are consumed.
            progress: called with the number of judged groups and the total.
        """
        tables = with_empty_events_if_missing(tables)
        snapshots = by_group(group_tables(tables))
        fanned = fan_out(tables, group_pattern(self.options))
        place = {name: number for number, name in enumerate(names_of(snapshots, 0, len(snapshots)))}
        begin = 0
        unsure = WidenedStarts(tables.get(FINDINGS), self.rules.runs)
        covered = CoveredStarts(self.rules.runs, tables)
        undated = UndatedMoves(self.rules.runs, tables)
        unknown_owners = UnknownOwners(self.rules.runs, tables)
        for first, end in fanned.chunks(ROWS_AT_ONCE):
            ledger: dict[str, list[pa.Table]] = {}
            some = fanned.tables_of(first, end)
            made = ledger_pass(some, self.engine, names_encoded=True)
            made = unsure.widened(made, some, self.engine)
            noted = _noted(made, ledger, covered, undated)
            shown = ((name, unknown_owners(name, rows)) for name, rows in noted)
            yield from within(shown, self.options)
            after = place[names_of(fanned, end - 1, end)[0]] + 1
            yield from self._judged(snapshots, begin, after, ledger, group_findings, unknown_owners)
            begin = after
            if progress is not None:
                progress(begin, len(snapshots))
        yield from self._judged(
            snapshots, begin, len(snapshots), {}, group_findings, unknown_owners
        )

    def _judged(
        self,
        snapshots: GroupedRows,
        begin: int,
        end: int,
        ledger: dict[str, list[pa.Table]],
        group_findings: GroupFindings,
        unknown_owners: UnknownOwners,
    ) -> LedgerRows:
        """Run the rules on a range of groups, and yield the rows of ``queue_progress`` of these
        groups.

        Groups without a consumer event have no ledger. The function empties ``ledger``, whose rows
        move into the snapshots.
        """
        if begin == end:
            return
        tables = snapshots.tables_of(begin, end)
        tables |= {name: pa.concat_tables(ledger.pop(name)) for name in [*ledger]}
        owned = tables.get("ownership")
        if owned is not None:
            owned = pa.Table.from_batches(
                [unknown_owners("ownership", rows) for rows in owned.to_batches()], owned.schema
            )
        kept = {
            (cluster, broker): kept_ms
            for cluster, run in self.rules.runs.items()
            for broker, kept_ms in run.retention_ms.items()
        }
        progress = with_expiry(with_holders(tables[PROGRESS], owned), kept)
        tables[PROGRESS] = progress
        of_groups = by_group(tables)
        del tables
        group_findings.add(run_group_rules(self.rules, snapshots_of(of_groups), self.options.group))
        shown = progress.select(PROGRESS_TABLES[PROGRESS].column_names)
        if self.options.group is not None:
            wanted = pc.match_like(shown["consumer_group"], group_pattern(self.options))
            shown = shown.filter(wanted)
        for batch in shown.combine_chunks().to_batches():
            yield PROGRESS, batch


def _noted(
    made: LedgerRows,
    ledger: dict[str, list[pa.Table]],
    covered: CoveredStarts,
    undated: UndatedMoves,
) -> LedgerRows:
    """Yield the rows, with pull starts and windows only where they are known.

    All rows are also added to ``ledger`` by table, with the windows of changes at the times of
    their events.
    """
    for name, rows in made:
        if name in STARTS:
            rows = covered(rows)
        if name in SIMULATED_TABLES:
            ledger.setdefault(name, []).append(_plain(name, rows))
        if name == "diffs":
            rows = undated.diffs(rows)
        if name == "epochs":
            rows = undated.epochs(rows)
        yield name, rows


def _plain(table: str, rows: pa.RecordBatch) -> pa.Table:
    """Return the rows with decoded names."""
    return pa.Table.from_batches([rows]).cast(SIMULATED_TABLES[table].arrow_schema())
