"""The summary of an audit and of its dry run, as text and as JSON."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rebalance_core.audit.counted_findings import Count
from rebalance_core.audit.known_issues import KNOWN
from rebalance_core.audit.outcome import verdict_of
from rebalance_core.cli import terminal
from rebalance_core.cli.job_options import AuditOptions
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.run.output_run import BESIDE_TABLES
from rebalance_core.cli.settings import Settings
from rebalance_core.cli.terminal import ExitCode, RowReport
from rebalance_core.contracts import AUDITED_TABLES
from rebalance_core.contracts.ledger import by_cause
from rebalance_core.engine.options import RowForecast
from rebalance_core.model.nouns import counted
from rebalance_core.model.verdicts import (
    CHANGES,
    FALLS_BEHIND,
    IDLE,
    INFO,
    MOVES,
    RUN_VERDICTS,
    SEVERITIES,
    STANDS_STILL,
    UNKNOWN,
    WORST_FIRST,
)

if TYPE_CHECKING:
    from rebalance_core.audit.changes import ListedChanges, ListedFinding
    from rebalance_core.contracts.run_record import AuditRecord
    from rebalance_core.ingest.file_record import FileRecord
    from rebalance_core.process.audited import UnknownGroup
    from rebalance_core.report.audit_report import ShownFinding

PAGE, METRICS, INGESTED, STATE, PRIVATE, CARRIED, GONE = BESIDE_TABLES["audit"]
"""`INGESTED` and `PRIVATE` are folders with the ingested tables; the latter is temporary and used
if client ids must not be kept. `CARRIED`, if it exists, has findings of earlier runs that this run
could not check; `GONE` has the fingerprints of findings that are gone.
"""
WRITTEN = (*AUDITED_TABLES, *BESIDE_TABLES["audit"])
WIDTH = 100
NAMED_CHANGES = 8
"""Maximum number of findings listed per state."""
FindingRow = Mapping[str, Any]


def audit_facts(
    output: str,
    verdict: "AuditRecord",
    top: "Sequence[ShownFinding]",
    rejected: Mapping[str, int],
    exit_code: int,
    seconds: float,
    run_on: str,
    changes: "ListedChanges | None" = None,
    not_seen: str = "",
    unknown: "Sequence[UnknownGroup]" = (),
    files: "Sequence[FileRecord]" = (),
) -> dict[str, Any]:
    """Return the `--json` object of an audit, which `render_audit` also reads.

    Args:
        output: the folder of findings and page.
        verdict: as in `_run.json`.
        top: the most severe findings, each followed by its consequences.
        rejected: how often each issue code occurs in the table `rejected`.
        exit_code: the job's exit code.
        seconds: how long the run took.
        run_on: where it ran, `process` or `spark`.
        changes: `audit.changes.Changes.listed` since the previous run; None if no previous run was
            named.
        not_seen: what was not checked, in one sentence per cluster.
        unknown: groups whose ownership is UNKNOWN: cluster, consumer_group, reason, settled_by.
        files: the collection's files, as in `_run.json`.
    """
    results = {
        **verdict,
        "changes": None if changes is None else dict(changes),
        "top_findings": [asdict(finding) for finding in top],
        "not_looked_at": not_seen,
        "unknown": [dict(group) for group in unknown],
        "rejected": dict(rejected),
        **terminal.file_facts(files),
    }
    return terminal.result_facts("audit", output, results, seconds, run_on, exit_code)


def render_audit(facts: Mapping[str, Any]) -> str:
    """Return the summary as text: the verdict, counts, and the most severe findings with their
    remedies.
    """
    word = facts["verdict"]
    lines = [
        f"{word}: {RUN_VERDICTS[word]} "
        f"(fails on {facts['fail_on']}, exit code {facts['exit_code']})",
        f"Audited from {terminal.utc(facts['start_ms'])} to {terminal.utc(facts['end_ms'])}; "
        "page in "
        f"{facts['output'].rstrip('/')}/report.html "
        f"({terminal.took(facts)})",
        *night_begun(facts),
        "",
        "groups    " + groups_counted(facts),
        *(f"reading   {words}" for words in reading_counted(facts)),
        "findings  " + findings_counted(facts),
    ]
    several = len(facts["clusters"]) > 1
    for name, cluster in facts["clusters"].items() if several else ():
        counts = [
            _counts(cluster["groups"]),
            _counts(_severities(cluster["findings"]), cluster["causes"]),
        ]
        lines.append(f"cluster   {name}: {cluster['verdict']}; {'; '.join(filter(None, counts))}")
    if facts["changes"] is not None:
        lines += _changes(facts["changes"], several=several)
    if facts["not_looked_at"]:
        lines += wrap(facts["not_looked_at"], WIDTH, subsequent_indent=" " * 10)
    if facts["rejected"]:
        lines.append("not read  " + not_read(facts["rejected"]))
    items = _items(facts["top_findings"])
    for (severity, rule_id), of_rule in groupby(items, lambda item: _rule(item[0])):
        lines += ["", f"  {severity:<8} {rule_id}", *_findings(list(of_rule), several)]
    shown = len(facts["top_findings"])
    grave = sum(
        n for counts in facts["findings"].values() for kind, n in counts.items() if kind != INFO
    )
    if grave > shown:
        lines += ["", f"  and {grave - shown} more: report.html, or the table findings"]
    return terminal.joined(lines)


_PROGRESS = {
    MOVES: ("moves", "move"),
    STANDS_STILL: ("stands still", "stand still"),
    FALLS_BEHIND: ("falls behind", "fall behind"),
    IDLE: ("is idle", "are idle"),
    UNKNOWN: ("unknown", "unknown"),
}


def night_begun(facts: Mapping[str, Any]) -> list[str]:
    """Return the start of the audited night, in words; empty if it began with the audited
    period.
    """
    if facts["night_ms"] <= facts["start_ms"]:
        return []
    return [
        (
            f"The night began at {terminal.utc(facts['night_ms'])}: findings that ended "
            "earlier are INFO."
        )
    ]


def groups_counted(facts: Mapping[str, Any]) -> str:
    """Return how many groups have each verdict, in words."""
    by_dumps = facts["by_dumps"]
    alone = f"; {by_dumps:,} from dumps alone, without earlier owners" if by_dumps else ""
    return (_counts(facts["groups"]) or "none") + alone


def reading_counted(facts: Mapping[str, Any]) -> list[str]:
    """Return how many groups read their queues, in words; empty if no group has members."""
    counts: Mapping[str, int] = facts["progress"]
    words = (f"{n:,} {_PROGRESS[word][n != 1]}" for word, n in counts.items())
    return [", ".join(words)] if counts else []


def findings_counted(facts: Mapping[str, Any]) -> str:
    """Return how many findings have each severity, in words."""
    return _counts(_severities(facts["findings"]), facts["causes"]) or "none"


def _items(findings: Sequence[FindingRow]) -> list[list[FindingRow]]:
    """Return the findings by cause, the cause first."""
    lists = by_cause((finding["fingerprint"], finding["caused_by"]) for finding in findings)
    return [[findings[position] for position in positions] for positions in lists]


def not_read(rejected: Mapping[str, int]) -> str:
    """Return which input the audit left out, and where it is listed."""
    return f"{terminal.by_code(rejected)}; files and lines are in the table rejected"


def _changes(changes: "ListedChanges", *, several: bool) -> list[str]:
    """Return the number of findings in each state, and list all but persistent ones.

    ``several`` states that several clusters were audited, so each finding names its cluster.
    """
    found: Mapping[str, Any] = changes
    named = {state: found[state] for state in CHANGES if state != "still"}
    counts = {_words(s): found[s] if s == "still" else len(found[s]) for s in CHANGES}
    lines = ["changes   " + (_counts({s: n for s, n in counts.items() if n}) or "none")]
    for state, findings in named.items():
        texts = Counter(_named_change(one, several=several) for one in findings)
        for text, times in [*texts.items()][:NAMED_CHANGES]:
            again = f" ({times:,} findings)" if times > 1 else ""
            lines.append(f"          {_words(state)}: {text}{again}")
        more = sum([*texts.values()][NAMED_CHANGES:])
        if more:
            lines.append(f"          and {more:,} more {_words(state)}")
    return lines


def _words(state: str) -> str:
    return state.replace("_", " ")


def _named_change(one: "ListedFinding", *, several: bool) -> str:
    group, topic = one["group"], one["topic"]
    about = _about(one["cluster"], group, one["broker"], topic, several=several)
    return f"{one['rule']} {about}" + (f" {topic}" if group and topic else "")


def _about(
    cluster: str, group: str | None, broker: str | None, topic: str | None, *, several: bool
) -> str:
    """Return the subject of a finding; if ``several`` clusters were audited, it names its own."""
    subject = group or broker or topic or "cluster"
    return f"{cluster} {subject}" if several else subject


def _rule(finding: FindingRow) -> tuple[str, str]:
    return finding["severity"], finding["rule_id"]


def _findings(items: Sequence[Sequence[FindingRow]], several: bool) -> list[str]:
    """Return a rule's findings, stating a shared remedy only once.

    Consequences are listed below their cause.

    ``several`` states that several clusters were audited, so each finding names its cluster.
    """
    lines = []
    for index, (finding, *consequences) in enumerate(items):
        names = (finding[name] for name in ("cluster", "consumer_group", "broker_name", "topic"))
        about = _about(*names, several=several)
        accepted = f" (accepted: {finding['accepted']})" if finding["accepted"] else ""
        lines += _wrapped(f"{about}{accepted}: ", finding["summary"])
        if KNOWN in finding["evidence"]:
            lines += _wrapped("known: ", finding["evidence"][KNOWN])
        if consequences:
            lines += _wrapped("with it: ", _named(finding, consequences))
        following = items[index + 1 : index + 2]
        if not following or following[0][0]["remedy"] != finding["remedy"]:
            lines += _wrapped("-> ", finding["remedy"])
    return lines


def _named(cause: FindingRow, consequences: Sequence[FindingRow]) -> str:
    """Return the rules of the consequences, with their topics and any groups other than the
    cause's.
    """
    by_rule: dict[str, list[str]] = {}
    for finding in consequences:
        group = (
            finding["consumer_group"]
            if finding["consumer_group"] != cause["consumer_group"]
            else None
        )
        about = " ".join(filter(None, (group, finding["topic"])))
        by_rule.setdefault(finding["rule_id"], []).append(about)
    texts = (f"{rule} {', '.join(filter(None, about))}".strip() for rule, about in by_rule.items())
    return "; ".join(texts)


def _wrapped(head: str, text: str) -> list[str]:
    return wrap(head + text, WIDTH, initial_indent=" " * 11, subsequent_indent=" " * 13)


def _severities(findings: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for kind in (*WORST_FIRST, "accepted"):
        total = sum(counts.get(kind, 0) for counts in findings.values())
        if total:
            totals[kind] = total
    return totals


def _counts(counts: Mapping[str, int], causes: Mapping[str, int] | None = None) -> str:
    """Return the counts in words, with the number of ``causes`` if it is lower."""
    return ", ".join(
        f"{count:,} {name}{_causes((causes or {}).get(name, 0), count)}"
        for name, count in counts.items()
    )


def _causes(causes: int, findings: int) -> str:
    return f" ({counted(causes, 'cause')})" if 0 < causes < findings else ""


def rehearsal(
    options: AuditOptions,
    settings: Settings,
    rows: RowForecast,
    counts: Sequence[Count] | None,
    files: int | None,
    accepted: int,
) -> JobReport:
    """Describe what a run would read and write, and how it would end.

    Args:
        options: the run's options.
        settings: the run's settings.
        rows: how it would judge its rows.
        counts: what it would find; None if it would refuse the rows.
        files: the collection's files; None if tables are read.
        accepted: the number of valid acceptances.
    """
    foretold = RowReport(rows.without_rows() if options.redact_clients else rows)
    verdict, exit_code = None, foretold.exit_code
    if counts is not None:
        word, fails = verdict_of(counts, options.fail_on)
        by_severity: Counter[str] = Counter()
        for count in counts:
            by_severity["accepted" if count.accepted else count.severity] += count.findings
        verdict = {"verdict": str(word), "findings": dict(by_severity)}
        exit_code = ExitCode.DIFFERENCES if fails else ExitCode.OK
    facts = {
        "job": "audit",
        "dry_run": True,
        **foretold.facts(),
        "exit_code": int(exit_code),
        "collection": options.collection,
        "input": options.input,
        "files": files,
        "accepted": accepted,
        "fail_on": options.fail_on,
        "verdict": verdict,
        "output": options.output,
        "writes": [*WRITTEN, *options.gate_files],
        "config": settings.as_dict(),
    }
    source = f"{options.collection} ({files:,} files)" if files is not None else options.input
    lines = [
        *terminal.DRY_RUN,
        f"input     {source}",
        f"accepted  {accepted} finding(s) in {options.accepted or 'no file'}",
        f"fail on   {options.fail_on}",
        f"output    {options.output}",
        f"  {', '.join(name for name in (*WRITTEN, *options.gate_files) if name != PRIVATE)}",
        *foretold.lines(),
    ]
    if counts is not None:
        by_kind = [f"{by_severity.get(name, 0):,} {name}" for name in SEVERITIES[::-1]]
        ends = f"{word}, {', '.join(by_kind)} not accepted"
        lines += ["", f"A run would end with exit code {int(exit_code)}: {ends}"]
    return JobReport(terminal.joined(lines), facts, exit_code)
