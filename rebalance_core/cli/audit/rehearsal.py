"""`audit --dry-run`: the whole audit but for its output, so that it ends as the run would."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rebalance_core.audit.outcome import Count, verdict_of
from rebalance_core.cli.audit.audit_output import PRIVATE, WRITTEN
from rebalance_core.cli.audit.request import AuditRequest
from rebalance_core.cli.exit_codes import ExitCode
from rebalance_core.cli.job import JobReport
from rebalance_core.cli.run.row_report import RowReport
from rebalance_core.cli.terminal import joined
from rebalance_core.engine.options import RowForecast
from rebalance_core.model.verdicts import SEVERITIES


def rehearsal_report(
    request: AuditRequest, rows: RowForecast, counts: Sequence[Count] | None
) -> JobReport:
    """What a run would read and write, and how it would end.

    Args:
        request: what the run is given.
        rows: what it would make of its rows.
        counts: what it would find; None: it would refuse the rows.
    """
    foretold = RowReport(rows.without_rows() if request.options.redact_clients else rows)
    if counts is None:
        return _report(request, foretold, None, foretold.exit_code)
    word, fails = verdict_of(counts, request.options.fail_on)
    by_severity: Counter[str] = Counter()
    for one in counts:
        by_severity["accepted" if one.accepted else one.severity] += one.findings
    verdict = {"verdict": str(word), "findings": dict(by_severity)}
    return _report(request, foretold, verdict, ExitCode.DIFFERENCES if fails else ExitCode.OK)


def _report(
    request: AuditRequest, foretold: RowReport, verdict: dict[str, Any] | None, exit_code: int
) -> JobReport:
    options = request.options
    files = len(request.collection.files) if request.collection else None
    facts = {
        "job": "audit",
        "dry_run": True,
        **foretold.facts(),
        "exit_code": int(exit_code),
        "collection": options.collection,
        "input": options.input,
        "files": files,
        "accepted": len(request.accepted),
        "fail_on": options.fail_on,
        "verdict": verdict,
        "output": options.output,
        "writes": list(WRITTEN),
        "config": request.settings.as_dict(),
    }
    source = f"{options.collection} ({files:,} files)" if files is not None else options.input
    lines = [
        "Dry run: nothing is written.",
        "",
        f"input     {source}",
        f"accepted  {len(request.accepted)} finding(s) by {options.accepted or 'no file'}",
        f"fail on   {options.fail_on}",
        f"output    {options.output}",
        f"  {', '.join(name for name in WRITTEN if name != PRIVATE)}",
        *foretold.lines(),
    ]
    if verdict is not None:
        found = [f"{verdict['findings'].get(name, 0):,} {name}" for name in SEVERITIES[::-1]]
        shown = f"{verdict['verdict']}, {', '.join(found)} not accepted"
        lines += ["", f"A run would end with exit code {int(exit_code)}: {shown}"]
    return JobReport(joined(lines), facts, exit_code)
