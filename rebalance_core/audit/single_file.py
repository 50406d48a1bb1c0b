"""The facts about a group in a single file: its contents, and the rules' findings.

It uses the audit's rules and rows; its ledger contains only memberships. Rules that depend on
predicted owners, or find that something is missing everywhere, are left out. Findings of the other
rules are not downgraded for lack of other files, because the reader knows that there is only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from rebalance_core.audit.confidence import borne_out
from rebalance_core.audit.dumps import (
    flag,
    holder_address,
    newest_answers,
    number,
    queue_of,
    whole_answers,
)
from rebalance_core.audit.finding_rows import finding_row
from rebalance_core.audit.findings import rule_failed
from rebalance_core.audit.group_snapshot import Finding, GroupSnapshot, Rule, grouped
from rebalance_core.audit.observations import observations
from rebalance_core.audit.prediction import Prediction
from rebalance_core.audit.rules import RULES
from rebalance_core.audit.unowned_queues import NOT_READ, unowned_queues, unread
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.verdicts import UNKNOWN, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        FindingsBegun,
        FlowControlledFact,
        StartRefusedFact,
    )


ASK_MEMBERS = (
    "Ask each broker for its members (consumerConnection -b) and each member for its queues "
    "(consumerStatus): the answers show why."
)

ASK_WHO_READS = (
    "Ask each broker for its members (consumerConnection -b). No queue has a holder if no member "
    "is online or answers, or if the group is BROADCASTING, pops or reads through a proxy."
)


@dataclass(frozen=True, slots=True)
class Connection:
    """A member as a broker lists it, or as it reports itself; None for what is not in the file."""

    client_id: str
    client_addr: str | None
    language: str | None
    version: str | None


@dataclass(frozen=True, slots=True)
class QueueShown:
    """A queue as consumerProgress shows it.

    Attributes:
        client: the holder's id, or only its address, depending on the answer; None: the queue has
            no holder.
        unread: the end minus the commit; negative if the commit is above the end, or the two were
            read at different times.
    """

    topic: str
    broker_name: str
    queue_id: int
    broker_offset: int
    consumer_offset: int
    unread: int
    client: str | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Requests of a client that servers refused or did not answer, for one reason.

    Attributes:
        request: as in REQUEST_FAILED.
        reason: the server's message, with the code, or the client's about a server that did not
            answer.
        minutes: the number of minutes with such lines.
        first_ms: the first time.
        last_ms: the last time.
    """

    request: str
    reason: str
    minutes: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class QueuesByReason:
    """Queues that a client did not pull or take over, for one reason.

    Attributes:
        reason: one of `model.flow_control` or `model.refused_starts`.
        queues: the number of queues.
        first_ms: the first time.
        last_ms: the last time.
    """

    reason: str
    queues: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class Cached:
    """Messages of a queue that a client has in its cache and has not finished."""

    topic: str
    broker_name: str
    queue_id: int
    client_id: str | None
    committed: int
    messages: int


@dataclass(frozen=True, slots=True)
class CommitShown:
    """The last commit of a queue in the file, and the first one."""

    topic: str
    broker_name: str
    queue_id: int
    committed_offset: int
    first_offset: int


@dataclass(frozen=True)
class GroupShown:
    """The contents of a file about a group.

    Attributes:
        consumer_group: its name.
        connections: the connections of its members.
        subscriptions: topics that the answers list, without retry topics.
        message_models: from the answers.
        queues: from consumerProgress, in order.
        with_clients: the answer has a column for the holders of queues.
        held: number of queues that a client reports as held; None if no client was queried, or its
            answer ends before its queues.
        popped: number of queues that it reports as popped.
        commits: the last commit of each queue in stores or logs, in order.
        refusals: the refusals of requests, in order of time.
        held_back: the queues whose pulls the client held back because its cache was full.
        not_taken: the queues that passes of the client did not take over.
        cached: the unfinished messages that the client reports, by queue.
        findings: the findings of the rules, without the cluster.
    """

    consumer_group: str
    connections: tuple[Connection, ...]
    subscriptions: tuple[str, ...]
    message_models: tuple[str, ...]
    queues: tuple[QueueShown, ...]
    with_clients: bool
    held: int | None
    popped: int
    commits: tuple[CommitShown, ...]
    refusals: tuple[Refusal, ...]
    held_back: tuple[QueuesByReason, ...]
    not_taken: tuple[QueuesByReason, ...]
    cached: tuple[Cached, ...]
    findings: tuple[FindingsBegun, ...]

    def facts(self) -> dict[str, object]:
        """Return the same facts for a program."""
        return asdict(self)


def shown(group: GroupSnapshot) -> GroupShown:
    """Return the facts about a group from the rows of this file only."""
    listed = group.tables["observed_members"]
    progress = group.facts["QUEUE_PROGRESS"]
    topics = {topic for row in listed for topic in row["subscriptions"] or ()}
    held = group.facts["HELD_QUEUE"]
    return GroupShown(
        consumer_group=group.consumer_group,
        connections=tuple(
            Connection(row["client_id"], row["client_addr"], row["language"], row["version"])
            for row in listed
        ),
        subscriptions=tuple(sorted(topic for topic in topics if not is_retry_topic(topic))),
        message_models=tuple(
            sorted({row["message_model"] for row in listed if row["message_model"]})
        ),
        queues=tuple(
            sorted(
                _queues(group), key=lambda queue: (queue.topic, queue.broker_name, queue.queue_id)
            )
        ),
        with_clients=any(flag(row["details"].get("with_clients")) for row in progress),
        held=len(held) if held or (whole_answers(group) and listed) else None,
        popped=len(group.facts["POP_QUEUE"]),
        commits=tuple(_commits(group)),
        refusals=tuple(_refusals(group)),
        held_back=tuple(_by_reason(group.facts["FLOW_CONTROLLED"])),
        not_taken=tuple(_by_reason(group.facts["START_REFUSED"])),
        cached=tuple(_cached(group)),
        findings=tuple(_findings(group)),
    )


def _queues(group: GroupSnapshot) -> Iterator[QueueShown]:
    for row in group.facts["QUEUE_PROGRESS"]:
        details, queue = row["details"], queue_of(row)
        end, commit = number(details["broker_offset"], 0), number(details["consumer_offset"], 0)
        client = row["client_id"] or details.get("client_ip") or None
        yield QueueShown(*queue, end, commit, end - commit, client)


def _commits(group: GroupSnapshot) -> Iterator[CommitShown]:
    in_time = sorted(group.tables["committed_offsets"], key=lambda row: row["observed_ms"])
    for queue, rows in sorted(grouped(in_time, queue_of).items()):
        yield CommitShown(*queue, rows[-1]["committed_offset"], rows[0]["committed_offset"])


def _refusals(group: GroupSnapshot) -> Iterator[Refusal]:
    alike = grouped(
        group.facts["REQUEST_FAILED"],
        lambda fact: (fact["details"]["request"], fact["details"]["reason"]),
    )
    for (request, reason), facts in alike.items():
        minutes = sum(fact["times"] for fact in facts)
        last_ms = max(fact["last_ms"] for fact in facts)
        yield Refusal(request, reason, minutes, facts[0]["first_ms"], last_ms)


def _by_reason(
    facts: Sequence[FlowControlledFact] | Sequence[StartRefusedFact],
) -> Iterator[QueuesByReason]:
    alike = grouped(facts, lambda fact: fact["details"]["reason"])
    for reason, same in sorted(alike.items()):
        yield QueuesByReason(
            reason,
            len({queue_of(fact) for fact in same}),
            min(fact["first_ms"] for fact in same),
            max(fact["last_ms"] for fact in same),
        )


def _cached(group: GroupSnapshot) -> Iterator[Cached]:
    held = sorted(
        group.facts["HELD_QUEUE"], key=lambda fact: (queue_of(fact), fact["client_id"] or "")
    )
    for fact in held:
        details = fact["details"]
        count = number(details["cached_messages"], 0)
        if count > 0:
            committed = number(details["commit_offset"], 0)
            yield Cached(*queue_of(fact), fact["client_id"], committed, count)


def _findings(group: GroupSnapshot) -> Iterator[FindingsBegun]:
    if is_system_group(group.consumer_group):
        return
    findings = [(NOT_READ, finding) for finding in _without_holder(group)]
    for rule in RULES:
        if rule.find is not None and not (rule.by_owners or rule.by_absence):
            findings += _by_rule(rule, group)
    yield from (finding_row(rule, finding, group.consumer_group) for rule, finding in findings)


def _without_holder(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield the queues without a holder in an answer; if none has one, they may have readers."""
    held = any(map(holder_address, newest_answers(group).values()))
    for finding in unread(group, unowned_queues(group, Prediction(group), observations(group))):
        if held:
            yield replace(finding, remedy=ASK_MEMBERS)
        else:
            yield replace(finding, severity=WARNING, remedy=ASK_WHO_READS)


def _by_rule(rule: Rule, group: GroupSnapshot) -> list[tuple[Rule, Finding]]:
    assert rule.find is not None
    try:
        findings = list(rule.find(group))
        checked = list(borne_out(rule, group, findings, UNKNOWN))
        pairs = zip(findings, checked, strict=True)
        # missing files are no reason to stay silent, but a state that has ended is
        return [
            (rule, finding if "not_covered" in sure.evidence else sure) for finding, sure in pairs
        ]
    except Exception as error:  # one rule must not hide what else the file shows
        return [rule_failed(rule.rule_id, group, error)]
