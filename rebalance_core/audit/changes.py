"""Compares two audits to determine which findings are new, persistent, healed, gone or not
examined.

A finding is healed if this run reports its end (`night.has_ended`). An absent finding is gone only
if this run looked for it: its cluster was completely collected, its group was judged, and the files
that its rule read before are present again in this run. Findings that were not examined are carried
from run to run, so each finding is compared with the last run that examined it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypedDict

from rebalance_core.audit.comparison_findings import COMPARISON_RULES
from rebalance_core.audit.completeness import COLLECTION_INCOMPLETE, MEMBER_COMMANDS, is_unsure
from rebalance_core.audit.counted_findings import is_open
from rebalance_core.audit.night import has_ended
from rebalance_core.audit.registry import ALL_RULES, RULE_FAILED
from rebalance_core.contracts.ledger import BROKER, fingerprint_of
from rebalance_core.ingest.collection import ADMIN
from rebalance_core.ingest.rows import OF_A_BROKER
from rebalance_core.model.verdicts import (
    ASSIGNED,
    BROADCASTING,
    CHANGES,
    COMPARISON_FAILED,
    IDS_REWRITTEN,
    INFO,
    LITE_TOPIC,
    NOT_TOLD,
    OFFLINE,
    SEVERITIES,
    STATIC_TOPIC,
    STRATEGY,
    SYSTEM,
    UNKNOWN,
)

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow, GroupVerdictsRow
    from rebalance_core.contracts.run_record import ReadFile

Group = tuple[str, str]

RULES = {rule.rule_id: rule for rule in ALL_RULES}
OF_FILES = frozenset(
    {
        COLLECTION_INCOMPLETE.rule_id,
        "INGEST_BROKER_LOG_MISSING",
        "INGEST_NAMESRV_LOG_MISSING",
        "INGEST_NO_NAMESRV_LOG",
    }
)
"""Findings about the collection itself, which every run checks."""
JUDGED_WITHOUT_OWNERS = (
    STRATEGY,
    STATIC_TOPIC,
    LITE_TOPIC,
    BROADCASTING,
    NOT_TOLD,
    ASSIGNED,
    IDS_REWRITTEN,
    COMPARISON_FAILED,
    SYSTEM,
)
"""Reasons for UNKNOWN other than missing evidence; rules that need no owners were still checked."""
_OF_GROUPS = ("consumerStatus", "consumerProgress", *MEMBER_COMMANDS)
_OUTPUT = re.compile(r"(?:^|/)[0-9]{10,16}-([A-Za-z]+)(?:-([^/]*))?")


def fingerprint(finding: FindingsRow) -> str:
    """Return the finding's fingerprint, computing it if no run has written it yet."""
    rule_id = finding["rule_id"]
    if finding.get("fingerprint"):
        return str(finding["fingerprint"])
    about = RULES[rule_id].about if rule_id in RULES else ""
    return fingerprint_of(finding, BROKER if rule_id in OF_A_BROKER else about)


class ListedFinding(TypedDict):
    """A finding in the summary of a run."""

    fingerprint: str
    rule: str
    cluster: str
    group: str | None
    broker: str | None
    topic: str | None
    summary: str


class ListedChanges(TypedDict):
    """The findings in each state since the previous run; persistent findings are only counted."""

    new: list[ListedFinding]
    reopened: list[ListedFinding]
    still: int
    healed: list[ListedFinding]
    gone: list[ListedFinding]
    not_looked_at: list[ListedFinding]


def _kind_of(name: str, kind: str) -> tuple[str, str]:
    """Return the kind of a file (for mqadmin's output, the command) and the rest of its name."""
    output = _OUTPUT.search(name) if kind == ADMIN else None
    return (kind, "") if output is None else (output[1], (output[2] or "").removesuffix(".txt"))


class Files:
    """The files that a run understood, at least in part.

    Args:
        read: their records in ``_run.json``: name, kind, understood; a run on tables has none.
    """

    def __init__(self, read: Iterable[ReadFile] = ()) -> None:
        self._kinds: dict[str, set[str]] = {}
        for file in read:
            if file["understood"]:
                kind, arguments = _kind_of(file["name"], file["kind"])
                self._kinds.setdefault(kind, set()).add(arguments.removeprefix("s-"))

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def lost(self, collected: Iterable[tuple[str, str]]) -> tuple[str, ...]:
        """Return the kinds of these files that are missing from a later collection.

        Args:
            collected: (name, kind) of its files, readable or not.
        """
        return tuple(sorted(self._kinds.keys() - {_kind_of(*file)[0] for file in collected}))

    def has(self, kind: str, group: str | None) -> bool:
        """Return True if a file of this kind was collected; output about a group must be about this
        group.
        """
        names = self._kinds.get(kind, set())
        if group is None or kind not in _OF_GROUPS:
            return bool(names)
        return any(name == group or name.startswith(f"{group}-") for name in names)


@dataclass(frozen=True)
class AuditedScope:
    """The groups and findings that a run examined.

    Attributes:
        clusters: the audited clusters.
        incomplete: clusters with an incomplete collection.
        verdicts: rows of ``group_verdicts``.
        failed: (cluster, group, rule) of rules that failed or whose findings are uncertain.
        files: the files it read; empty if it read tables, which may contain every kind.
    """

    clusters: Collection[str]
    incomplete: Collection[str]
    verdicts: Mapping[Group, GroupVerdictsRow]
    failed: Collection[tuple[str, str | None, str]] = ()
    files: Files = field(default_factory=Files)

    @classmethod
    def by(
        cls,
        clusters: Collection[str],
        incomplete: Collection[str],
        verdicts: Iterable[GroupVerdictsRow],
        findings: Iterable[FindingsRow],
        files: Files,
    ) -> AuditedScope:
        """Read which groups and rules a run checked from its ``group_verdicts`` and
        ``findings``.
        """
        return cls(
            clusters,
            incomplete,
            {(row["cluster"], row["consumer_group"]): row for row in verdicts},
            {
                (row["cluster"], row["consumer_group"], rule_id)
                for row in findings
                if (rule_id := _not_judged(row)) is not None
            },
            files,
        )

    def failed_on(self, finding: FindingsRow) -> bool:
        """Return True if the finding's rule failed for its group or is uncertain there."""
        return (finding["cluster"], finding["consumer_group"], finding["rule_id"]) in self.failed

    def at(self, finding: FindingsRow, needs: Iterable[str]) -> bool:
        """Return True if the run would have found it again if it still held.

        Args:
            finding: a row of ``findings`` of an earlier run.
            needs: kinds of files that showed it.
        """
        cluster, group, rule_id = finding["cluster"], finding["consumer_group"], finding["rule_id"]
        if cluster not in self.clusters:
            return False
        if rule_id in OF_FILES:
            return True
        if cluster in self.incomplete or self.failed_on(finding):
            return False
        verdict = self.verdicts.get((cluster, group)) if group is not None else None
        if verdict is not None and not _was_judged(rule_id, verdict):
            return False
        if not self.files:
            return True
        away = group is not None and (verdict is None or verdict["verdict"] == OFFLINE)
        return all(
            self.files.has(kind, group) for kind in needs if not (away and kind in _OF_GROUPS)
        )


def _not_judged(finding: FindingsRow) -> str | None:
    """Return the rule that failed for a group or is uncertain of its finding, or None."""
    if finding["rule_id"] == RULE_FAILED.rule_id:
        return str(finding["evidence"]["failed"])
    return str(finding["rule_id"]) if is_unsure(finding) else None


def _was_judged(rule_id: str, verdict: GroupVerdictsRow) -> bool:
    """Return True if rules could examine the group."""
    rule = RULES.get(rule_id)
    if verdict["unasked"] and rule is not None and set(rule.files) & set(MEMBER_COMMANDS):
        return False
    if verdict["verdict"] != UNKNOWN:
        return True
    if verdict["reason"] not in JUDGED_WITHOUT_OWNERS:
        return False
    return rule is None or not (rule.by_owners or rule in COMPARISON_RULES.values())


@dataclass(frozen=True)
class Earlier:
    """A finding of an earlier run, and the kinds of files that showed it."""

    finding: FindingsRow
    needs: tuple[str, ...] = ()


def earlier_findings(
    findings: Iterable[FindingsRow], files: Files, carried: Iterable[Earlier] = ()
) -> list[Earlier]:
    """Return the findings with which a later run is compared: a run's open findings above INFO and
    those that it carried over.

    Args:
        findings: the findings that the run kept.
        files: the files it read.
        carried: the findings that it had not examined.
    """
    kept = []
    for row in filter(is_open, findings):
        rule = RULES.get(row["rule_id"])
        kinds = rule.files if rule is not None else ()
        needs = tuple(kind for kind in kinds if files.has(kind, row["consumer_group"]))
        kept.append(Earlier(row, needs))
    fingerprints = {fingerprint(earlier.finding) for earlier in kept}
    return kept + [
        earlier for earlier in carried if fingerprint(earlier.finding) not in fingerprints
    ]


@dataclass(frozen=True)
class Changes:
    """Open findings above INFO, in one of six states.

    The last run is the last one that examined the subject.

    Attributes:
        new: no earlier run had them.
        reopened: an earlier run had them, but not the last.
        still: the last run had them, too.
        gone: only the last run had them.
        not_looked_at: the last run had them, and this run cannot decide.
        healed: the last run had them, and they have ended.
    """

    new: Sequence[FindingsRow]
    reopened: Sequence[FindingsRow]
    still: Sequence[FindingsRow]
    gone: Sequence[FindingsRow]
    not_looked_at: Sequence[Earlier]
    healed: Sequence[FindingsRow] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of findings in each state."""
        return {state: len(getattr(self, state)) for state in CHANGES}

    def listed(
        self, shown: Callable[[FindingsRow], FindingsRow] = lambda row: row
    ) -> ListedChanges:
        """Return each state with its findings, in machine-readable form; persistent findings are
        only counted.

        ``shown``: earlier findings without client ids, if these must be hidden.
        """
        unseen = [shown(earlier.finding) for earlier in self.not_looked_at]
        return {
            "new": _listed(self.new),
            "reopened": _listed(self.reopened),
            "still": len(self.still),
            "healed": _listed(self.healed),
            "gone": _listed(map(shown, self.gone)),
            "not_looked_at": _listed(unseen),
        }


def failing_findings(
    findings: Iterable[FindingsRow],
    fail_on: str,
    changes: Changes | None = None,
    fail_on_new: str | None = None,
) -> list[FindingsRow]:
    """Return the open findings that make an audit end with exit code 3.

    Args:
        findings: all findings of the run. An incomplete collection always counts.
        fail_on: the lowest severity that counts.
        changes: the changes since the previous run, if there is one.
        fail_on_new: the lowest severity of new and reopened findings; if given, only these count.
            None applies ``fail_on``.
    """
    still_open = [row for row in findings if row["accepted"] is None]
    incomplete = [row for row in still_open if row["rule_id"] == COLLECTION_INCOMPLETE.rule_id]
    if changes is None or fail_on_new is None:
        judged, least = still_open, SEVERITIES.index(fail_on)
    else:
        judged, least = [*changes.new, *changes.reopened], SEVERITIES.index(fail_on_new)
    grave = [
        row
        for row in judged
        if SEVERITIES.index(row["severity"]) >= least
        and row["rule_id"] != COLLECTION_INCOMPLETE.rule_id
    ]
    return incomplete + grave


def _listed(findings: Iterable[FindingsRow]) -> list[ListedFinding]:
    return [
        {
            "fingerprint": fingerprint(row),
            "rule": row["rule_id"],
            "cluster": row["cluster"],
            "group": row["consumer_group"],
            "broker": row["broker_name"],
            "topic": row["topic"],
            "summary": row["summary"],
        }
        for row in findings
    ]


Absence = Literal["healed", "gone", "not_looked_at"]


def ended_findings(findings: Iterable[FindingsRow]) -> dict[str, FindingsRow]:
    """Return a run's ended findings, by fingerprint."""
    return {fingerprint(row): row for row in findings if has_ended(row)}


def absence_of(past: Earlier, ended: Container[str], looked: AuditedScope) -> Absence:
    """Return the state of a finding that is not among a run's findings above INFO.

    Args:
        past: the finding when it was open.
        ended: fingerprints of `ended_findings`.
        looked: what the run examined.
    """
    if fingerprint(past.finding) in ended and not looked.failed_on(past.finding):
        return "healed"
    return "gone" if looked.at(past.finding, past.needs) else "not_looked_at"


def changes_since(
    findings: Sequence[FindingsRow],
    earlier: Sequence[Earlier],
    looked: AuditedScope,
    truncated: Collection[str] = (),
    gone_before: Collection[str] = (),
) -> Changes:
    """Compare a run with earlier runs.

    Args:
        findings: all findings of this run.
        earlier: the earlier findings; those that are accepted now do not count as gone.
        looked: what this run examined.
        truncated: rules whose findings the previous run did not all keep, so none of them counts as
            new.
        gone_before: fingerprints of findings that were gone in an earlier run.
    """
    now = [row for row in findings if row["severity"] != INFO]
    present = {fingerprint(row) for row in now}
    before = {fingerprint(past.finding) for past in earlier}
    ended = ended_findings(findings)
    absent: dict[Absence, list[Earlier]] = {"healed": [], "gone": [], "not_looked_at": []}
    for past in earlier:
        if fingerprint(past.finding) not in present:
            absent[absence_of(past, ended, looked)].append(past)
    still_open = [row for row in now if row["accepted"] is None]
    seen_before = [fingerprint(row) in before for row in still_open]
    new = [
        row
        for row, old in zip(still_open, seen_before, strict=True)
        if not old and row["rule_id"] not in truncated
    ]
    return Changes(
        [row for row in new if fingerprint(row) not in gone_before],
        [row for row in new if fingerprint(row) in gone_before],
        [row for row, old in zip(still_open, seen_before, strict=True) if old],
        [past.finding for past in absent["gone"]],
        absent["not_looked_at"],
        [ended[fingerprint(past.finding)] for past in absent["healed"]],
    )


def truncated_rules(kept: Mapping[str, int], counted: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return the rules with fewer findings kept than counted by severity and acceptance.

    >>> truncated_rules({"A": 3, "B": 1}, {"A": {"ERROR": 2, "accepted": 1}, "B": {"INFO": 2}})
    ['B']
    """
    return sorted(rule for rule, by in counted.items() if kept.get(rule, 0) < sum(by.values()))
