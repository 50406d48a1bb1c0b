"""The findings of the gate: one a class and topic of differences, and one a group not compared."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import GroupCase
from rebalance_core.audit.evidence.wording import listed, plural, queue_names
from rebalance_core.audit.finding import ERROR, INFO, WARNING, Finding, Rule
from rebalance_core.audit.gate.compare import REASONS, UNKNOWN, UNSTABLE, GateResult
from rebalance_core.audit.gate.difference import (
    CLASSES,
    FOREIGN,
    LOCK,
    STALE,
    TWIN,
    UNEXPLAINED,
    Difference,
)

_SEEN_BY = "ownership against HELD_QUEUE, QUEUE_PROGRESS and observed_ownership"
_DIFFERS = {
    STALE: (ERROR, "Restart the client named, or let it rebalance; look for lost notifications."),
    LOCK: (
        WARNING,
        "Wait 60 s and dump again; if it stays, look for the client that has the lock.",
    ),
    TWIN: (WARNING, "Give each process its own client id (instanceName, or unset it)."),
    FOREIGN: (ERROR, "Set one strategy for all members; name it in consumer_groups.jsonl."),
    UNEXPLAINED: (ERROR, "Dump the group again; compare the client's log with the ledger."),
}

GATE_RULES: dict[str, Rule] = {
    why: Rule(
        f"OWNERSHIP_DIFFERS_{why}",
        severity,
        f"Live ownership is not the predicted one: {CLASSES[why]}.",
        _SEEN_BY,
        remedy,
    )
    for why, (severity, remedy) in _DIFFERS.items()
} | {
    UNSTABLE: Rule(
        "GROUP_UNSTABLE",
        INFO,
        "The group changed while it was dumped, or had not settled: what differs proves nothing.",
        "epochs and diffs around the moments of the dumps",
        "Nothing; dump again if it matters.",
    ),
    UNKNOWN: Rule(
        "OWNERSHIP_UNKNOWN",
        INFO,
        "Predicted and live ownership cannot be compared; what is missing of the collection is "
        "COLLECTION_INCOMPLETE, what is popped is POP_NOT_MODELLED.",
        "DUMP, EXPECTED_BROKER, BROKER_FILE; ingest's INGEST_STRATEGY_UNKNOWN; REQUEST_MODE",
        "Collect what the evidence names, or name the strategy in consumer_groups.jsonl.",
    ),
}


def gate_findings(case: GroupCase, result: GateResult) -> Iterator[tuple[Rule, Finding]]:
    """What the comparison of one group found."""
    group = case.consumer_group
    if result.verdict == UNSTABLE:
        yield (
            GATE_RULES[UNSTABLE],
            Finding(
                f"{group} changed while it was dumped ({result.reason}).",
                {"change": result.reason, "looks": result.looks},
                last_ms=result.dumped_ms,
            ),
        )
    if result.verdict == UNKNOWN:
        yield (
            GATE_RULES[UNKNOWN],
            Finding(
                f"The live ownership of {group} is UNKNOWN: {REASONS[result.reason]}.",
                {"reason": result.reason},
                last_ms=result.dumped_ms,
            ),
        )
    grouped: dict[tuple[str, str], list[Difference]] = {}
    for one in result.differences:
        grouped.setdefault((one.why, one.queue.topic), []).append(one)
    for (why, topic), found in sorted(grouped.items()):
        yield GATE_RULES[why], _difference(topic, found, result)


def _difference(topic: str, found: list[Difference], result: GateResult) -> Finding:
    queues = sorted({(one.queue.broker_name, one.queue.queue_id) for one in found})
    first, last = min(one.at_ms for one in found), max(one.at_ms for one in found)
    healed = last < result.last_round_ms
    one = found[0]
    explained = all(each.cause for each in found)
    holder = one.live or (f"not {one.asked}" if one.asked else "nobody")
    predicted = listed(sorted(one.predicted)) or "nobody"
    told = f" ({one.told})" if one.told else ""
    ending = "; a later round of dumps agrees again" if healed else ""
    ending += f"; {one.cause} explains it for now" if explained else ""
    return Finding(
        f"{plural(len(queues), 'queue')} of {topic} held otherwise than predicted, e.g. "
        f"{one.queue.broker_name}:{one.queue.queue_id}: predicted {predicted}, live {holder}"
        f"{told}{ending}.",
        {
            "queues": queue_names(queues),
            "predicted": predicted,
            "live": holder,
            "why": one.told or CLASSES[one.why],
            "source": one.source,
        },
        severity=INFO if healed or explained else None,
        topic=topic,
        client_id=one.asked,
        first_ms=first,
        last_ms=last,
    )
