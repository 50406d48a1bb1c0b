"""The first sentence of the page: what the verdict means."""

from rebalance_core.model.statuses import WORST_FIRST
from rebalance_core.model.verdicts import INCOMPLETE
from rebalance_core.report.audit_report import AuditReport
from rebalance_core.report.page.sections import failing, severity_rank


def headline(report: AuditReport) -> str:
    """The verdict in one or two sentences, true whatever the word says."""
    return " ".join(part for part in (_start(report), _findings(report), _compared(report)) if part)


def _start(report: AuditReport) -> str:
    if report.verdict == INCOMPLETE:
        return "Part of the run could not be compared: what is not listed may still be wrong."
    return ""


def _findings(report: AuditReport) -> str:
    accepted = sum(finding.accepted is not None for finding in report.findings)
    known = f" Known and accepted: {accepted:,}." if accepted else ""
    words = [
        f"{report.counts[severity]:,} {severity}"
        for severity in sorted(report.counts, key=lambda s: (severity_rank(s), s))
        if report.counts[severity]
    ]
    return (f"{', '.join(words)}{_weight(report)}." if words else "No findings.") + known


def _weight(report: AuditReport) -> str:
    if report.fail_on not in WORST_FIRST:
        return ""
    count = failing(report)
    if count:
        return f"; {count:,} at or above {report.fail_on}, where the audit exits 3"
    return f"; none at or above {report.fail_on}, where the audit would exit 3"


def _compared(report: AuditReport) -> str:
    groups = report.groups
    if not groups.total:
        return "No group was seen."
    online = groups.total - groups.offline
    idle = f" {groups.offline:,} more have no member." if groups.offline else ""
    if not online:
        return f"No group is online: {groups.total:,} have no member."
    if groups.differing:
        return (
            f"In {groups.differing:,} of {online:,} groups online the live owners differ from the "
            f"computed ones.{idle}"
        )
    same = groups.equal + groups.shared
    shared = f" ({groups.shared:,} share queues)" if groups.shared else ""
    if same == online:
        return (
            f"In all {online:,} groups online{shared} the live owners are the computed ones.{idle}"
        )
    return (
        f"In {same:,} of {online:,} groups online{shared} the live owners are the computed ones; "
        f"the other {online - same:,} could not be compared.{idle}"
    )
