"""The findings of the previous audit, and what changed since."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_core.audit.changes import (
    Changes,
    Earlier,
    Files,
    Looked,
    changes_since,
    earlier_findings,
    truncated_rules,
)
from rebalance_core.audit.redact import Redaction
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.process.audit.report_data import shown_findings
from rebalance_core.process.written_tables import ReadWritten
from rebalance_core.report.audit_report import Previous
from rebalance_core.report.audit_rows import CHANGES_ON_PAGE


@dataclass(frozen=True, eq=False)
class PreviousAudit:
    """What was found before.

    Attributes:
        end_ms: end of the previous audit.
        earlier: what it found and kept, and what it had not looked at.
        truncated: rules of which it did not keep all.
    """

    end_ms: int
    earlier: Sequence[Earlier]
    truncated: Sequence[str]

    def changes(self, findings: Iterable[Mapping[str, Any]], looked: Looked) -> Changes:
        """What is new, still there, gone and not looked at."""
        return changes_since(findings, self.earlier, looked, self.truncated)


def previous_audit(
    read: ReadWritten, outcome: Mapping[str, Any], files: Iterable[Mapping[str, Any]], carried: str
) -> PreviousAudit:
    """An audit that was written.

    Args:
        read: reads its output.
        outcome: of its record.
        files: that it read, of its record.
        carried: its text of `carried_lines`; empty: it had looked at everything.
    """
    kept = rows_of_arrow(read("findings", None))
    by_rule = Counter(row["rule_id"] for row in kept)
    earlier = earlier_findings(kept, Files(files), _carried(carried))
    return PreviousAudit(outcome["end_ms"], earlier, truncated_rules(by_rule, outcome["findings"]))


def carried_lines(changes: Changes, redaction: Redaction | None) -> str:
    """What was not looked at, for the run after: a JSON object a line."""
    lines = [
        {
            "finding": redaction.finding(one.finding) if redaction else one.finding,
            "needs": one.needs,
        }
        for one in changes.not_looked_at
    ]
    return "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines)


def _carried(text: str) -> list[Earlier]:
    lines = map(json.loads, text.splitlines())
    return [Earlier(line["finding"], tuple(line["needs"])) for line in lines]


def shown_changes(end_ms: int, changes: Changes, redaction: Redaction | None) -> Previous:
    """The changes as the page shows them.

    ``redaction``: for earlier findings, which may tell of clients; None: they may.
    """
    unseen = [one.finding for one in changes.not_looked_at]
    return Previous(
        end_ms,
        tuple(shown_findings(changes.new, CHANGES_ON_PAGE)),
        tuple(shown_findings(changes.gone, CHANGES_ON_PAGE, redaction)),
        tuple(shown_findings(unseen, CHANGES_ON_PAGE, redaction)),
        changes.counts,
    )
