"""Known defects of RocketMQ and its clients, and the findings that they explain."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from rebalance_core.audit.group_snapshot import AuditRun, GroupSnapshot
from rebalance_core.audit.topic_readers import is_proxied
from rebalance_core.contracts.settings_file import toml_document
from rebalance_core.model.errors import UsageError, unknown_keys
from rebalance_core.model.languages import LANGUAGE_CODES
from rebalance_core.protocol.client_libraries import library_of

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ConsumerGroupsRow, FindingsBegun

TomlTable: TypeAlias = Mapping[str, object]
"""A table from a hand-written file, whose contents may be anything until checked."""


LIST_NAME = "known_issues.toml"
THREAD = re.compile(r"[\w.-]+/[\w.-]+#[1-9][0-9]*")
Numbers = tuple[int, ...]

_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+){1,2}")
_LISTS = ("rules", "languages", "consumer_types")
_VERSIONS = ("client_from", "client_to", "broker_from", "broker_to")
_WORDS = ("id", "url", "title", "symptom", "remedy")


@dataclass(frozen=True)
class KnownIssue:
    """A table in `known_issues.toml`, whose header comment explains the fields."""

    id: str
    url: str
    title: str
    rules: tuple[str, ...]
    languages: tuple[str, ...]
    symptom: str
    remedy: str
    client_from: str | None = None
    client_to: str | None = None
    broker_from: str | None = None
    broker_to: str | None = None
    ordered: bool | None = None
    consumer_types: tuple[str, ...] = ()
    evidence: Mapping[str, str] = field(default_factory=dict)
    summary: str = ""

    def of_client(self, language: str | None, version: str | None) -> bool:
        """Return True if clients of this language and version have the issue; unknown versions
        do not.
        """
        if language not in self.languages:
            return False
        return in_range(version, self.client_from, self.client_to)

    def of_broker(self, version: str | None) -> bool:
        """Return True if brokers of this version have the issue."""
        return in_range(version, self.broker_from, self.broker_to)


def in_range(version: str | None, first: str | None, last: str | None) -> bool:
    """Return True if the version lies in the range, inclusive; without ends, any version does.

    >>> in_range("5.2.0", "5.2.0", None), in_range("4.9.8", None, "4.9.4")
    (True, False)
    """
    if first is None and last is None:
        return True
    numbers = _numbers(version or "")
    if numbers is None:
        return False
    return (first is None or _at_least(numbers, first)) and (
        last is None or not _at_least(numbers, last) or numbers == _numbers(last)
    )


def _at_least(numbers: Numbers, version: str) -> bool:
    other = _numbers(version)
    return other is not None and numbers >= other


def _numbers(version: str) -> Numbers | None:
    if _VERSION.fullmatch(version) is None:
        return None
    numbers = tuple(int(part) for part in version.split("."))
    return (*numbers, 0, 0)[:3]


@cache
def known_issues() -> tuple[KnownIssue, ...]:
    """Return the issues bundled with the package."""
    text = (files("rebalance_core.audit") / LIST_NAME).read_text("utf-8")
    return parse_known_issues(text, LIST_NAME)


def parse_known_issues(
    text: str, name: str, rule_ids: Collection[str] | None = None
) -> tuple[KnownIssue, ...]:
    """Return the issues in a TOML text.

    Args:
        text: tables ``[[issue]]``.
        name: the file's name, for messages.
        rule_ids: the valid ids; None to skip the check.

    Raises:
        UsageError: the text is not TOML or has other contents; the message lists every mistake.
    """
    document = toml_document(text, name)
    tables = document.get("issue")
    plain: list[TomlTable] = (
        [table for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []
    )
    if set(document) != {"issue"} or plain != tables:
        raise UsageError(f"{name} holds {', '.join(document) or 'nothing'}; expected [[issue]]")
    mistakes: list[str] = []
    issues: list[KnownIssue] = []
    seen: list[object] = []
    for number, table in enumerate(plain, 1):
        of_table = _mistakes(table)
        if not of_table:
            issues.append(_issue(table))
            of_table = _contradictions(issues[-1], rule_ids)
        issue_id = table.get("id")
        if issue_id in seen:
            of_table.append("its id appears twice")
        if issue_id is not None:
            seen.append(issue_id)
        where = f"{name}, issue {number} ({table.get('id', 'without id')})"
        mistakes += [f"{where}: {mistake}" for mistake in of_table]
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return tuple(issues)


def _issue(table: TomlTable) -> KnownIssue:
    """Return the issue in a table without `_mistakes`."""
    checked = cast("Mapping[str, Any]", table)
    lists = {name: tuple(checked[name]) for name in _LISTS if name in table}
    return KnownIssue(**{**checked, **lists})


def _mistakes(table: TomlTable) -> list[str]:
    """Return the missing and unknown fields of a table, and those of another type."""
    names = [field.name for field in fields(KnownIssue)]
    needed = [
        field.name
        for field in fields(KnownIssue)
        if field.default is MISSING and field.default_factory is MISSING
    ]
    mistakes = [text for _, text in unknown_keys(table, names)]
    mistakes += [f"{name} is missing" for name in needed if name not in table]
    for name in (*_WORDS, "summary"):
        value = table.get(name, name)
        if not (isinstance(value, str) and value.strip()):
            mistakes.append(f"{name} is {value!r}, expected a text")
    for name in _VERSIONS:
        value = table.get(name, "0.0")
        if not isinstance(value, str) or _VERSION.fullmatch(value) is None:
            mistakes.append(f"{name} is {value!r}, expected a version such as 5.2.0")
    for name in _LISTS:
        value = table.get(name, [])
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            mistakes.append(f"{name} is {value!r}, not a list of texts")
    ordered, evidence = table.get("ordered", False), table.get("evidence", {})
    if not isinstance(ordered, bool):
        mistakes.append(f"ordered is {ordered!r}, expected true or false")
    if not isinstance(evidence, dict) or not all(isinstance(v, str) for v in evidence.values()):
        mistakes.append(f"evidence is {evidence!r}, expected a table of strings")
    return mistakes


def _contradictions(issue: KnownIssue, rule_ids: Collection[str] | None) -> list[str]:
    mistakes = []
    if THREAD.fullmatch(issue.id) is None:
        mistakes.append(f"id {issue.id!r} does not have the form <owner>/<repository>#<number>")
    else:
        repository, _, number = issue.id.partition("#")
        if issue.url.rpartition("/")[2] != number or f"/{repository}/" not in issue.url:
            mistakes.append(f"url {issue.url} does not belong to {issue.id}")
    if not issue.rules:
        mistakes.append("rules lists no finding")
    mistakes += [
        f"{language!r} is not a LanguageCode"
        for language in issue.languages
        if language not in LANGUAGE_CODES
    ]
    if rule_ids is not None:
        mistakes += [
            f"there is no rule {rule_id}" for rule_id in issue.rules if rule_id not in rule_ids
        ]
    for who, first, last in (
        ("client", issue.client_from, issue.client_to),
        ("broker", issue.broker_from, issue.broker_to),
    ):
        if first is not None and last is not None and not in_range(first, None, last):
            mistakes.append(f"{who}_from {first} is after {who}_to {last}")
    ranged = issue.client_from is not None or issue.client_to is not None
    if ranged and issue.languages != ("JAVA",):
        mistakes.append("a range of client versions needs languages = ['JAVA']")
    return mistakes


KNOWN = "known"
"""The evidence key for known issues that match a finding, with the matching versions."""

ClientVersion = tuple[str | None, str | None]
"""A client's language and version; each is None if no file shows it."""


@dataclass(frozen=True)
class Concerned:
    """The clients and brokers that a finding may concern.

    Attributes:
        brokers: version by broker, if a file shows it.
        clients: language and version by client id.
        settings: the group's row of consumer_groups; None for findings about the cluster.
    """

    brokers: Mapping[str, str] = field(default_factory=dict)
    clients: Mapping[str, ClientVersion] = field(default_factory=dict)
    settings: ConsumerGroupsRow | None = None


def of_group(group: GroupSnapshot) -> Concerned:
    """Return the group's clients, as brokers list them, and the cluster's brokers.

    If several dumps describe a client, the last one counts; not all of them state its language. A
    proxy logs a gRPC client's language but not its release.
    """
    memberships = group.tables["memberships"]
    versions = {row["client_id"]: row["version"] for row in memberships}
    clients: dict[str, ClientVersion] = {
        row["client_id"]: (row["language"], None)
        for row in memberships
        if is_proxied(row) and row["language"] is not None
    }
    listed = group.tables["observed_members"]
    for row in sorted(listed, key=lambda row: (row["observed_ms"], row["source"] or "")):
        client_id = row["client_id"]
        language, version = clients.get(client_id, (None, versions.get(client_id)))
        clients[client_id] = (row["language"] or language, row["version"] or version)
    versions_of = {name: (library_of(*client), client[1]) for name, client in clients.items()}
    return Concerned(group.run.versions, versions_of, group.settings)


def of_cluster(run: AuditRun) -> Concerned:
    """Return the brokers of a cluster."""
    return Concerned(run.versions)


def of_java_clients(run: AuditRun) -> Concerned:
    """Return Java clients of any release, as their logs are the only ones that do not name the
    client.
    """
    return Concerned(run.versions, {"": ("JAVA", None)})


def with_known(
    rows: Iterable[FindingsBegun], concerned: Concerned, issues: Iterable[KnownIssue] | None = None
) -> list[FindingsBegun]:
    """Return the findings, adding any matching known issue to the evidence."""
    listed = list(known_issues() if issues is None else issues)
    return [_named(row, concerned, listed) for row in rows]


def _named(row: FindingsBegun, concerned: Concerned, issues: Iterable[KnownIssue]) -> FindingsBegun:
    fitting = [f"{issue.id}, {party}" for issue in issues for party in _fit(row, concerned, issue)]
    if not fitting:
        return row
    return {**row, "evidence": {**row["evidence"], KNOWN: "; ".join(fitting)}}


def _fit(row: FindingsBegun, concerned: Concerned, issue: KnownIssue) -> Iterator[str]:
    """Yield the clients or brokers that have the issue, with versions, if it matches."""
    if row["rule_id"] not in issue.rules or not _holds(row, concerned, issue):
        return
    parts = []
    if issue.languages:
        clients = concerned.clients
        if row["client_id"] is not None:
            clients = {name: client for name, client in clients.items() if name == row["client_id"]}
        fitting = {client for client in clients.values() if issue.of_client(*client)}
        if not fitting:
            return
        # only for Java does the number identify the release
        java = sorted({version or language for language, version in fitting if language == "JAVA"})
        others = sorted({str(language) for language, _ in fitting if language != "JAVA"})
        parts += [f"client {', '.join([*java, *others])}"]
    if issue.broker_from or issue.broker_to or not issue.languages:
        versions = concerned.brokers
        broker = row["broker_name"]
        if broker is not None and broker in versions:
            versions = {broker: versions[broker]}
        having = sorted({version for version in versions.values() if issue.of_broker(version)})
        if not having and (issue.broker_from or issue.broker_to):
            return
        parts += [f"broker {', '.join(having) or 'of any version'}"]
    yield ", ".join(parts)


def _holds(row: FindingsBegun, concerned: Concerned, issue: KnownIssue) -> bool:
    """Return whether the conditions other than languages and versions hold."""
    settings = concerned.settings
    ordered = None if settings is None else settings["ordered"]
    consumer_type = None if settings is None else settings["consumer_type"]
    if issue.ordered is not None and ordered is not issue.ordered:
        return False
    if issue.consumer_types and consumer_type not in issue.consumer_types:
        return False
    evidence = row["evidence"]
    return issue.summary in row["summary"] and all(
        name in evidence and text in evidence[name] for name, text in issue.evidence.items()
    )
