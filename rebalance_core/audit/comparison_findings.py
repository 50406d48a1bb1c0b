"""The findings from a comparison: one per class and topic that differs, and one for UNKNOWN."""

from collections.abc import Iterator

from rebalance_core.audit import difference
from rebalance_core.audit.comparable import known_brokers
from rebalance_core.audit.comparison import ComparisonResult
from rebalance_core.audit.difference import Difference
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.rewritten_ids import HASHED, divides_by_hashes
from rebalance_core.audit.subjects import CAUSES
from rebalance_core.audit.unowned_queues import NOT_READ, QUEUES_NOT_REPORTED, unanswered, unread
from rebalance_core.model import verdicts
from rebalance_core.model.events import BROKER_DOWN
from rebalance_core.model.verdicts import NOT_TOLD as OWNERS_NOT_REPORTED

_SEEN_BY = "the comparison"
_DIFFERS: dict[str, tuple[verdicts.Severity, str]] = {
    difference.STALE: (
        verdicts.ERROR,
        "Restart the named client, or let it rebalance; look for lost notifications.",
    ),
    difference.SUSPENDED: (
        verdicts.WARNING,
        "Resume the member (resume()), or stop it: the messages in the queue wait until then.",
    ),
    difference.LOCK: (
        verdicts.WARNING,
        "Wait 60 s and dump again; if the difference remains, look for the client that has the "
        "lock.",
    ),
    difference.NOT_STARTED: (
        verdicts.ERROR,
        "Read on in the client's log after that line: it may show a broker that does not answer, "
        "a missing permission, or a topic that the name servers do not know. Then restart the "
        "client.",
    ),
    difference.DUPLICATE_ID: (
        verdicts.WARNING,
        "Give each process its own client id (instanceName, or unset it).",
    ),
    difference.FOREIGN: (
        verdicts.ERROR,
        "Set one strategy for all members and name it in consumer_groups.jsonl.",
    ),
    difference.UNEXPLAINED: (
        verdicts.ERROR,
        "Dump the group again; compare the client's log with the ledger.",
    ),
}

OLDER_VIEW = (
    "Restart the members one at a time: they still divide the topic as they did before the last "
    "change. Then dump the owners again."
)
LATE_REMEDY = (
    "Dump again in a minute. If it still differs, look for lost notifications and blocked timers "
    "(STARVED_TIMERS) of the named members."
)

COMPARISON_RULES: dict[str, Rule] = {
    why: Rule(
        f"OWNERSHIP_DIFFERS_{why}",
        severity,
        f"Live ownership differs from the prediction: {difference.CLASSES[why]}.",
        _SEEN_BY,
        remedy,
        by_owners=True,
        reads=(CAUSES,),
    )
    for why, (severity, remedy) in _DIFFERS.items()
} | {
    verdicts.UNSTABLE: Rule(
        "GROUP_UNSTABLE",
        verdicts.INFO,
        "A change was under way while the group was dumped: each queue that it moves may still "
        "have its previous owner, may already have its new owner, or may have no owner.",
        "epochs and diffs",
        "Nothing. Dump again if the result matters.",
    ),
    verdicts.UNKNOWN: Rule(
        "OWNERSHIP_UNKNOWN",
        verdicts.INFO,
        "Predicted and live ownership cannot be compared; COLLECTION_INCOMPLETE names what the "
        "collection lacks.",
        "DUMP, EXPECTED_BROKER, BROKER_FILE; ingest's INGEST_STRATEGY_UNKNOWN",
        "Collect the files that the evidence names, or name the strategy in consumer_groups.jsonl.",
    ),
    verdicts.IDS_REWRITTEN: Rule(
        "INGEST_IDS_REWRITTEN",
        verdicts.WARNING,
        "A redaction tool rewrote the group's client ids: either another order of the same "
        "members explains every queue in the dumps (hashed addresses), or part of an id is "
        "masked. Members divide queues by the order of their ids, so the predicted owners are "
        "unknown and rules about owners report nothing. If addresses are hashed, the ledger has "
        "no owners for groups with several members.",
        "memberships, HELD_QUEUE, observed_ownership; the ids themselves",
        "Redact with `rebalance collect --redact`, which keeps the order of ids and is consistent "
        "across all files, or collect again without redaction.",
        reads=(CAUSES,),
    ),
    "UNHELD": NOT_READ,
    "UNREPORTED": QUEUES_NOT_REPORTED,
}


def comparison_findings(
    group: GroupSnapshot, result: ComparisonResult
) -> Iterator[tuple[Rule, Finding]]:
    """Yield the findings from a group's comparison, each with its rule."""
    name = group.consumer_group
    if result.verdict == verdicts.UNSTABLE:
        late = None if result.unsettled is None else difference.lateness(group, result.unsettled)
        yield (
            COMPARISON_RULES[verdicts.UNSTABLE],
            Finding(
                f"{name} changed while it was dumped ({result.reason})."
                f"{'' if late is None else late.words}",
                {"change": result.reason, "looks": result.observations}
                | ({} if late is None else late.evidence),
                last_ms=result.dumped_ms,
                remedy=LATE_REMEDY if late is not None and late.late else None,
            ),
        )
    why = "" if result.unknown is None else result.unknown.why
    lost = divides_by_hashes(group)
    if result.reason == verdicts.IDS_REWRITTEN or lost:
        why_rewritten = why if result.reason == verdicts.IDS_REWRITTEN else HASHED
        left_out = "; its ledger has no owners" if lost else ""
        yield (
            COMPARISON_RULES[verdicts.IDS_REWRITTEN],
            Finding(
                f"The client ids of {name} were rewritten: {why_rewritten}{left_out}.",
                {"why": why_rewritten},
                last_ms=result.dumped_ms,
            ),
        )
    if result.verdict == verdicts.UNKNOWN:
        lacking = f" ({why})" if why else ""
        yield (
            COMPARISON_RULES[verdicts.UNKNOWN],
            Finding(
                f"The live ownership of {name} is UNKNOWN: "
                f"{verdicts.REASONS[result.reason]}{lacking}.",
                {"reason": result.reason},
                last_ms=result.dumped_ms,
                remedy=settling(group, result),
            ),
        )
    yield from ((NOT_READ, finding) for finding in unread(group, result.unheld))
    if result.unanswered_round is not None:
        yield QUEUES_NOT_REPORTED, unanswered(group, result.unanswered_round)
    alike = grouped(result.differences, lambda difference: (difference.why, difference.queue.topic))
    offsets = Offsets(group)
    for (why, topic), differences in sorted(alike.items()):
        yield COMPARISON_RULES[why], _difference(topic, differences, result, offsets)


_SETTLED_BY = {
    verdicts.NO_DUMP: "Dump consumerProgress -s true -g {group}, and consumerStatus -g {group}.",
    OWNERS_NOT_REPORTED: (
        "Dump consumerStatus -g {group} while its members answer. Clients that never report "
        "their queues record them only in their own logs."
    ),
    verdicts.ASSIGNED: "Nothing: only the applications know which queues they assigned.",
    verdicts.STALE_DUMP: "Dump consumerProgress -s true -g {group} again.",
    verdicts.INCOMPLETE: "Copy the broker.log of {brokers}.",
    verdicts.NOT_COVERED: (
        "Copy the broker.log of {brokers}, with all rotated files, or dump consumerConnection and "
        "consumerProgress -s true -g {group} again."
    ),
    verdicts.STRATEGY: "Dump consumerStatus -g {group}, which names the strategy, or "
    "name it with its "
    "parameters in consumer_groups.jsonl.",
    verdicts.SUBSCRIPTION: "Dump consumerStatus -g {group}: each member reports its topics.",
    verdicts.LANGUAGE: "Nothing: consumerProgress -s true -g {group} shows who holds which queue.",
    verdicts.STATIC_TOPIC: "Nothing: no file records which logical queue a member reads.",
    verdicts.LITE_TOPIC: "Nothing: no file records which lite topic a client reads.",
    verdicts.BROADCASTING: (
        "Nothing: it keeps no offsets on brokers, and no queue has a single owner."
    ),
    verdicts.IDS_REWRITTEN: "Redact with `rebalance collect --redact`, which keeps their order.",
    verdicts.SYSTEM: "Nothing: the audit does not cover this group.",
    verdicts.COMPARISON_FAILED: "Report the finding RULE_FAILED.",
}


def settling(name: GroupSnapshot, result: ComparisonResult) -> str | None:
    """Return the file or command that would settle an UNKNOWN, or None for another verdict."""
    if result.verdict != verdicts.UNKNOWN:
        return None
    if result.unknown is not None and result.unknown.remedy:
        return result.unknown.remedy
    missing = sorted(known_brokers(name) & name.run.missing)
    return _SETTLED_BY[result.reason].format(
        group=name.consumer_group,
        brokers=listed(missing) or "each broker",
    )


def _difference(
    topic: str, differences: list[Difference], result: ComparisonResult, offsets: Offsets
) -> Finding:
    behind = offsets.behind({difference.queue for difference in differences if difference.unheld})
    queues = sorted(
        {(difference.queue.broker_name, difference.queue.queue_id) for difference in differences}
    )
    first = min(difference.at_ms for difference in differences)
    last = max(difference.at_ms for difference in differences)
    healed = last < result.last_round_ms
    example = differences[0]
    explained = all(each.cause for each in differences)
    holder = example.live or (
        f"not {example.asked}" if example.asked and not example.unheld else "no owner"
    )
    unheld = queue_names(sorted({each.queue[1:] for each in differences if each.unheld}))
    left = f"; no client holds {unheld}, {messages(behind)} behind" if unheld else ""
    returned = bool(unheld) and any(BROKER_DOWN in each.view for each in differences)
    predicted = listed(sorted(example.predicted)) or "no owner"
    note = f" ({example.note})" if example.note else ""
    ending = "; a later round of dumps agrees again" if healed else ""
    ending += f"; {example.cause} explains it so far" if explained else ""
    return Finding(
        f"{plural(len(queues), 'queue')} of {topic} differ from the prediction, e.g. "
        f"{queue_names([example.queue[1:]])}: predicted {predicted}, live "
        f"{holder}{note}{left}{ending}.",
        {
            "queues": queue_names(queues),
            "predicted": predicted,
            "live": holder,
            "why": example.note or difference.CLASSES[example.why],
            "source": example.source,
        }
        | ({} if example.live else {"committed": offsets.committed(q.queue for q in differences)})
        | ({"unheld": unheld, "behind": "unknown" if behind is None else behind} if unheld else {})
        | ({"reason": "unknown"} if returned else {}),
        severity=verdicts.INFO if healed or explained else None,
        topic=topic,
        client_id=example.asked,
        first_ms=first,
        last_ms=last,
        remedy=OLDER_VIEW if example.view else None,
    )
