"""The findings of the previous audit, and the changes since then."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from rebalance_core.audit.changes import (
    Changes,
    Earlier,
    Files,
    earlier_findings,
    truncated_rules,
)
from rebalance_core.audit.night import NIGHT_MS, EarlierNight, stated_ends
from rebalance_core.audit.redact import Redaction
from rebalance_core.contracts.ledger import FINDINGS
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.engine.table_writer import GroupName, ReadWritten
from rebalance_core.history.happenings import group_states
from rebalance_core.history.night import ReadColumns
from rebalance_core.model.verdicts import INCOMPLETE
from rebalance_core.report.tonight import GroupState

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        FindingsRow,
    )
    from rebalance_core.contracts.run_record import AuditRecord, ReadFile


@dataclass(frozen=True, eq=False)
class PreviousAudit:
    """The findings of the previous audit.

    Attributes:
        nights: its nights by cluster.
        earlier: its kept findings, and those it could not check.
        truncated: rules of which it did not keep all findings.
        gone: fingerprints of findings of earlier runs that are gone.
        files: the files it read.
        groups: the states of its groups at its end; None if only its findings were kept.
    """

    nights: Mapping[str, EarlierNight]
    earlier: Sequence[Earlier]
    truncated: Sequence[str]
    gone: frozenset[str] = frozenset()
    files: Files = field(default_factory=Files)
    groups: Mapping[GroupName, GroupState] | None = None

    @property
    def end_ms(self) -> int:
        """Return the end of the audit, epoch ms UTC."""
        return max((night.end_ms for night in self.nights.values()), default=0)


def previous_audit(
    read: ReadWritten,
    outcome: AuditRecord,
    files: Iterable[ReadFile],
    carried: str,
    gone: str,
) -> PreviousAudit:
    """Return a previous audit, read from its output.

    Args:
        read: reads its output.
        outcome: from its record.
        files: the files it read, from its record.
        carried: its `carried_lines`; empty if it examined everything.
        gone: its `process.audited.FinishedAudit.gone_lines`; empty if no finding was ever gone.
    """
    kept: list[FindingsRow] = rows_of_arrow(read("findings", None))
    by_rule = Counter(row["rule_id"] for row in kept)
    read_files = Files(files)
    earlier = earlier_findings(kept, read_files, _carried(carried))
    truncated = truncated_rules(by_rule, outcome["findings"])
    nights = {
        cluster: _night(audited, (row for row in kept if row["cluster"] == cluster))
        for cluster, audited in outcome["clusters"].items()
    }
    return PreviousAudit(
        nights, earlier, truncated, frozenset(gone.split()), read_files, _groups_of(read)
    )


def _groups_of(read: ReadWritten) -> Mapping[GroupName, GroupState] | None:
    try:
        return group_states(all_rows(read))
    except FileNotFoundError:
        return None


def all_rows(read: ReadWritten) -> ReadColumns:
    """Return a function that reads the given columns of a whole table."""
    return lambda table, columns: read(table, columns=columns)


def _night(audited: AuditRecord, findings: Iterable[FindingsRow]) -> EarlierNight:
    """Return the night of a cluster, with its findings; old records have no version."""
    end_ms = audited["end_ms"]
    night_ms = audited.get("night_ms", end_ms - NIGHT_MS)
    seen_ms = audited.get("logged_ms", end_ms)
    if audited["verdict"] == INCOMPLETE:
        seen_ms = night_ms
    return EarlierNight(night_ms, end_ms, seen_ms, stated_ends(findings, seen_ms, end_ms))


def carried_lines(changes: Changes, redaction: Redaction | None) -> str:
    """Return the findings that this run could not check, for the next run, as a JSON object per
    line.
    """
    lines = [
        {
            "finding": redaction.finding(earlier.finding) if redaction else earlier.finding,
            "needs": earlier.needs,
        }
        for earlier in changes.not_looked_at
    ]
    return "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines)


def _carried(text: str) -> list[Earlier]:
    """Parse the text of `carried_lines`; raise ValueError for a damaged line."""
    carried = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            row = json.loads(line)
            finding, needs = dict(row["finding"]), tuple(map(str, row["needs"]))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"line {number} of what was not looked at is damaged") from error
        missing = _CARRIED_COLUMNS - finding.keys()
        if missing:
            raise ValueError(
                f"line {number} of what was not looked at lacks {', '.join(sorted(missing))}"
            )
        carried.append(Earlier(cast("FindingsRow", finding), needs))
    return carried


_CARRIED_COLUMNS = set(FINDINGS.column_names) - {"accepted", "fingerprint", "caused_by"}
"""Columns of a finding that exist in every version."""
