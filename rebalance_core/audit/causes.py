"""Finds the causes of findings among the other findings, for `caused_by` in ``findings``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from rebalance_core.model.verdicts import INFO

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow

Condition = Callable[["FindingsRow", "FindingsRow"], bool]
"""Takes the cause, then the finding; returns True if the finding's evidence names the cause."""

Subject = Literal["consumer_group", "topic"]
GROUP: tuple[Subject, ...] = ("consumer_group",)
GROUP_TOPIC: tuple[Subject, ...] = ("consumer_group", "topic")
TOPIC: tuple[Subject, ...] = ("topic",)


@dataclass(frozen=True, slots=True)
class Link:
    """A link from the findings of one rule to those of another rule that they cause.

    Attributes:
        cause: the rule of the cause.
        consequence: the rule of the finding that follows.
        same: columns that must agree, besides the cluster.
        condition: an additional requirement.
        quiet: whether the cause remains certain even though it becomes INFO once it is over.
    """

    cause: str
    consequence: str
    same: tuple[Subject, ...]
    condition: Condition
    quiet: bool = False


def _gives(reason: str) -> Condition:
    """Return the condition that the consequence states this reason."""
    return lambda cause, finding: finding["evidence"].get("reason") == reason


def _held_by_twins(cause: FindingsRow, finding: FindingsRow) -> bool:
    """Return True if the only double holders of the queues are processes with this client id."""
    clients = finding["evidence"].get("clients", "").split(", ")
    return all(client.startswith(f"{cause['client_id']} (") for client in clients)


def _held_by_several(cause: FindingsRow, finding: FindingsRow) -> bool:
    """Return True if two clients, neither of them a duplicate, hold the queues in the ledger."""
    twins = "(" in finding["evidence"].get("clients", "(")
    return not twins and "as dumps show" not in finding["summary"]


def _storm_of(words: str) -> Condition:
    """Return the condition that a storm names the cause given by `words`, with columns filled
    in.
    """
    return lambda cause, finding: words.format_map(cause) in finding["evidence"].get("causes", "")


def _unheld(cause: FindingsRow, finding: FindingsRow) -> bool:
    """Return True if the unread queues are those without a holder in the comparison."""
    unheld = cause["evidence"].get("unheld")
    return unheld is not None and unheld == finding["evidence"].get("queues")


def _predicted(cause: FindingsRow, finding: FindingsRow) -> bool:
    """Return True if the member of the cause should hold the queues, or the cause covers several
    members.
    """
    client_id = cause["client_id"]
    return client_id is None or client_id in finding["evidence"].get("predicted", "")


def _equal(*names: str) -> Condition:
    """Return the condition that these fields of both findings' evidence are equal."""

    def condition(cause: FindingsRow, finding: FindingsRow) -> bool:
        stated = [[row["evidence"].get(name) for name in names] for row in (cause, finding)]
        return stated[0] == stated[1] and None not in stated[0]

    return condition


def _set_up(rule_id: str, *names: str) -> Link:
    """Return a link from a rule to itself, because groups with the same topic set-up share a cause.

    The first group's finding is the cause.
    """
    return Link(rule_id, rule_id, TOPIC, _equal(*names))


_TWICE = _gives("a client id appears twice in the member list")
_PART = _gives("a counted member does not subscribe to the topic")
_DIFFERS = ("STALE_VIEW", "LOCK_HELD", "FOREIGN_STRATEGY", "SUSPENDED")

LINKS = (
    Link("DUPLICATE_CLIENT_ID", "DOUBLE_OWNER", GROUP, _held_by_twins),
    Link("DUPLICATE_CLIENT_ID", "ORPHAN_QUEUES", GROUP, _TWICE),
    Link("MEMBERS_MULTIPLIED", "ORPHAN_QUEUES", GROUP, _TWICE),
    Link("MIXED_STRATEGIES", "DOUBLE_OWNER", GROUP, _held_by_several),
    Link("MIXED_STRATEGIES", "ORPHAN_QUEUES", GROUP, _gives("members use different strategies")),
    Link("INCONSISTENT_SUBSCRIPTION", "ORPHAN_QUEUES", GROUP, _PART),
    Link("UNSUBSCRIBED_SHARE", "ORPHAN_QUEUES", GROUP_TOPIC, _PART),
    Link("FROZEN_GROUP", "ORPHAN_QUEUES", GROUP, _gives("the allocation failed (FROZEN)")),
    Link(
        "MEMBER_SUSPENDED",
        "ORPHAN_QUEUES",
        GROUP,
        _gives("a suspended member does not take its share"),
    ),
    Link(
        "INCONSISTENT_SUBSCRIPTION",
        "REBALANCE_STORM",
        GROUP,
        _storm_of("members subscribe to different topics"),
    ),
    Link(
        "UNSUBSCRIBED_SHARE",
        "REBALANCE_STORM",
        GROUP,
        _storm_of("{client_id} unsubscribed {topic}"),
    ),
    Link("MEMBER_SUSPENDED", "OWNERSHIP_DIFFERS_SUSPENDED", GROUP, _predicted),
    *(
        Link(f"OWNERSHIP_DIFFERS_{reason}", "QUEUES_NOT_READ", GROUP_TOPIC, _unheld)
        for reason in _DIFFERS
    ),
    Link(
        "INVISIBLE_TIME_TOO_SHORT",
        "REVIVE_REPEATS",
        GROUP_TOPIC,
        _gives("the invisible time ends before consumption does"),
    ),
    Link("GROUP_DISABLED", "COMMIT_STANDS_STILL", GROUP, _gives("disabled")),
    Link("CONSUMER_BLOCKED", "COMMIT_STANDS_STILL", GROUP, _gives("unfinished message")),
    Link("MEMBER_SUSPENDED", "COMMIT_STANDS_STILL", GROUP, _gives("suspended")),
    Link("TOPIC_GONE", "COMMITS_ABOVE_END", GROUP_TOPIC, _equal("deleted_from"), quiet=True),
    _set_up("READ_FEWER_THAN_WRITTEN", "queues", "numbers"),
    _set_up("READ_MORE_THAN_WRITTEN", "queues", "numbers"),
    _set_up("READ_ONLY_BROKER_COUNTED", "brokers"),
    _set_up("TOPIC_GONE", "deleted_from", "still_on"),
)
"""All the ways in which one finding can follow from another; a finding without an entry has no
known cause.
"""


def with_causes(findings: Iterable[FindingsRow]) -> list[FindingsRow]:
    """Return the findings, each with the fingerprint of its cause.

    A finding has a cause only if the findings of exactly one rule fit (`LINKS`) at a time when both
    findings held. An INFO finding causes only INFO findings, unless its link is quiet.

    Args:
        findings: all findings of a run, as rows with a fingerprint.
    """
    rows = [row.copy() for row in findings]
    by_subject: dict[tuple[Any, ...], list[FindingsRow]] = {}
    for row in sorted(rows, key=_first):
        for number, link in enumerate(LINKS):
            if row["rule_id"] == link.cause:
                by_subject.setdefault((number, *_subject(link, row)), []).append(row)
    for row in rows:
        causes = set[str | None]()
        for number, link in enumerate(LINKS):
            if row["rule_id"] == link.consequence:
                fitting = by_subject.get((number, *_subject(link, row)), ())
                causes |= _fitting(link, fitting, row)
        row["caused_by"] = causes.pop() if len(causes) == 1 else None
    return rows


def _fitting(link: Link, causes: Iterable[FindingsRow], row: FindingsRow) -> set[str | None]:
    """Return the fingerprints of the causes that fit; for a rule that causes itself, that
    of the first cause.
    """
    fitting = (
        cause for cause in causes if _may_cause(link, cause, row) and link.condition(cause, row)
    )
    if link.cause != link.consequence:
        return {cause["fingerprint"] for cause in fitting}
    first = next(fitting, row)
    return {first["fingerprint"]} - {row["fingerprint"]}


def _subject(link: Link, row: FindingsRow) -> tuple[Any, ...]:
    return (row["cluster"], *(row[name] for name in link.same))


def _first(row: FindingsRow) -> tuple[Any, ...]:
    return (row["accepted"] is not None, row["consumer_group"] or "", row["fingerprint"])


def _may_cause(link: Link, cause: FindingsRow, row: FindingsRow) -> bool:
    """Return True if both held at the same time and the cause is at least as certain."""
    sure = link.quiet and "not_covered" not in cause["evidence"]
    if cause["severity"] == INFO and row["severity"] != INFO and not sure:
        return False
    (first, last), (other_first, other_last) = _time(cause), _time(row)
    return first <= other_last and other_first <= last


def _time(row: FindingsRow) -> tuple[float, float]:
    first, last = row["first_ms"], row["last_ms"]
    return (-inf if first is None else first, inf if last is None else last)
