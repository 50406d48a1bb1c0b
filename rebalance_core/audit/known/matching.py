"""Which known issues fit a finding, by the clients and brokers concerned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rebalance_core.audit.case import AuditRun, GroupCase
from rebalance_core.audit.known.known_issue import KnownIssue, known_issues
from rebalance_core.protocol.members import library_of

KNOWN = "known"
"""Key of a finding's evidence: the issues that fit it, and by which versions."""

Row = dict[str, Any]
Client = tuple[str | None, str | None]
"""Language and version; None: no file tells."""


@dataclass(frozen=True)
class Concerned:
    """Whom a finding may be about.

    Attributes:
        brokers: version by broker, where a file tells.
        clients: language and version by client id.
        settings: the group's row of consumer_groups; empty for findings on the cluster.
    """

    brokers: Mapping[str, str] = field(default_factory=dict)
    clients: Mapping[str, Client] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


def of_group(case: GroupCase) -> Concerned:
    """The clients of a group, as brokers list them, and the cluster's brokers.

    Of what several dumps state of a client the last counts; not all of them tell its language.
    """
    versions = {row["client_id"]: row["version"] for row in case.rows("memberships")}
    clients: dict[str, Client] = {}
    listed = case.rows("observed_members")
    for row in sorted(listed, key=lambda row: (row["observed_ms"], row["source"] or "")):
        client_id = row["client_id"]
        language, version = clients.get(client_id, (None, versions.get(client_id)))
        clients[client_id] = (row["language"] or language, row["version"] or version)
    known = {name: (library_of(*one), one[1]) for name, one in clients.items()}
    return Concerned(case.run.versions, known, case.settings)


def of_cluster(run: AuditRun) -> Concerned:
    """The brokers of a cluster."""
    return Concerned(run.versions)


def of_java_clients(run: AuditRun) -> Concerned:
    """Java clients of any release: only theirs are the logs that name no client."""
    return Concerned(run.versions, {"": ("JAVA", None)})


def with_known(
    rows: Iterable[Row], concerned: Concerned, issues: Iterable[KnownIssue] | None = None
) -> list[Row]:
    """The findings, those that a known issue fits with it in their evidence."""
    listed = list(known_issues() if issues is None else issues)
    return [_named(row, concerned, listed) for row in rows]


def _named(row: Row, concerned: Concerned, issues: Iterable[KnownIssue]) -> Row:
    fitting = [f"{issue.id}, {whose}" for issue in issues for whose in _fit(row, concerned, issue)]
    if not fitting:
        return row
    return {**row, "evidence": {**row["evidence"], KNOWN: "; ".join(fitting)}}


def _fit(row: Row, concerned: Concerned, issue: KnownIssue) -> Iterator[str]:
    """Whose it is, once, if the issue fits: by the language and versions that were seen."""
    if row["rule_id"] not in issue.rules or not _holds(row, concerned, issue):
        return
    whose = []
    if issue.languages:
        clients = concerned.clients
        if row["client_id"] is not None:
            clients = {name: one for name, one in clients.items() if name == row["client_id"]}
        found = {one for one in clients.values() if issue.of_client(*one)}
        if not found:
            return
        # only Java's number is that of its release
        java = sorted({version or language for language, version in found if language == "JAVA"})
        others = sorted({str(language) for language, _ in found if language != "JAVA"})
        whose += [f"client {', '.join([*java, *others])}"]
    if issue.broker_from or issue.broker_to or not issue.languages:
        versions = concerned.brokers
        if row["broker_name"] in versions:
            versions = {row["broker_name"]: versions[row["broker_name"]]}
        having = sorted({version for version in versions.values() if issue.of_broker(version)})
        if not having and (issue.broker_from or issue.broker_to):
            return
        whose += [f"broker {', '.join(having) or 'of any version'}"]
    yield ", ".join(whose)


def _holds(row: Row, concerned: Concerned, issue: KnownIssue) -> bool:
    """The conditions beside languages and versions."""
    settings = concerned.settings
    if issue.ordered is not None and settings.get("ordered") is not issue.ordered:
        return False
    if issue.consumer_types and settings.get("consumer_type") not in issue.consumer_types:
        return False
    evidence = row["evidence"]
    return issue.summary in row["summary"] and all(
        name in evidence and text in evidence[name] for name, text in issue.evidence.items()
    )
