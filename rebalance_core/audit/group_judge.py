"""What judges one group, wherever its rows are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rebalance_core.audit.accepted import Acceptance
from rebalance_core.audit.case import AuditRun, GroupCase
from rebalance_core.audit.judge import judge
from rebalance_core.audit.redact import Redaction

Row = dict[str, Any]


@dataclass(frozen=True)
class GroupJudge:
    """Judges one group; travels to every task.

    Attributes:
        runs: by cluster.
        accepted: acceptances that hold.
        salt: of the names for client ids; None: they are shown.
    """

    runs: Mapping[str, AuditRun]
    accepted: tuple[Acceptance, ...] = ()
    salt: str | None = None

    def __call__(
        self, cluster: str, group: str, rows: Mapping[str, list[Row]]
    ) -> Mapping[str, list[Row]]:
        """Rows of ``findings`` and ``group_verdicts`` from the group's rows by table."""
        case = GroupCase(cluster, group, self.runs.get(cluster, AuditRun(0, 0)), rows)
        judged = judge(case, self.accepted)
        if self.salt is None or not judged["findings"]:
            return judged
        redaction = Redaction(self.salt, case)
        return {**judged, "findings": [redaction.finding(row) for row in judged["findings"]]}
