"""What ingest and the audit find, and the verdicts on groups."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from rebalance_core.contracts.table import Table, columns
from rebalance_core.model.statuses import SEVERITIES
from rebalance_core.model.verdicts import VERDICTS

BROKER, QUEUE = "broker", "queue"
"""What a rule may be about, beside a group and a topic."""

FINDINGS = Table(
    "findings",
    "Something a person should know: of a collection's files, of a group's settings, of an audit.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        rule_id STRING which rule found it
        severity STRING {allowed}
        consumer_group? STRING the group concerned
        topic? STRING the topic concerned
        broker_name? STRING the broker concerned
        queue_id? INT the queue concerned
        client_id? STRING the client concerned
        first_ms? BIGINT since when, epoch ms UTC
        last_ms? BIGINT until when, epoch ms UTC
        summary STRING one sentence
        evidence MAP<STRING, STRING> what it was seen by
        remedy STRING what to do
        accepted? STRING why it is accepted; null: it is not
        fingerprint? STRING the same in every run (of what: audit-rules.md); null: of contract 2
        """,
        severity=SEVERITIES,
    ),
)

GROUP_VERDICTS = Table(
    "group_verdicts",
    "What came of comparing predicted and live ownership of a group.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        verdict STRING {allowed}
        reason STRING of UNKNOWN why (audit-rules.md), of UNSTABLE what changed; else empty
        looks INT observations of clients and queues that were compared
        differences INT queues that differ outside every window
        members INT processes that are members at the end
        dumped_ms? BIGINT when ownership was dumped last, epoch ms UTC
        unasked ARRAY<STRING> brokers that were not asked for the group's members
        """,
        verdict=tuple(VERDICTS),
    ),
    key=("cluster", "consumer_group"),
)


def fingerprint_of(finding: Mapping[str, Any], about: str) -> str:
    """The fingerprint of a row of ``findings``; of earlier contracts' rows, which have none, too.

    Clients are no part of it: one that restarts has a new id.

    Args:
        finding: a row.
        about: `BROKER` or `QUEUE` if its rule is about one, else empty.

    >>> row = {"cluster": "c", "rule_id": "R", "broker_name": "a", "queue_id": 1}
    >>> fingerprint_of(row, "queue"), fingerprint_of(row, "") == fingerprint_of(row, "broker")
    ('7a568a93724fbee5', False)
    """
    names = ["cluster", "rule_id", "consumer_group", "topic"]
    names += {BROKER: ["broker_name"], QUEUE: ["broker_name", "queue_id"]}.get(about, [])
    text = json.dumps([finding.get(name) for name in names])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
