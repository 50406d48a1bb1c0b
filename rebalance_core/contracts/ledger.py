"""The tables that a simulation and an audit write."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from rebalance_core.contracts.derived import none_of, ratio
from rebalance_core.contracts.table import QUEUE_KEY, Table, columns
from rebalance_core.model.group_settings import MESSAGE_MODELS, REBALANCE_MODES
from rebalance_core.model.verdicts import (
    BASES,
    EPOCH_STATUSES,
    HEALTH,
    PROGRESS,
    SEVERITIES,
    START_STATUSES,
    VERDICTS,
)

BROKER, QUEUE = "broker", "queue"
"""Possible subjects of a rule, besides a group and a topic."""

FINDINGS = Table(
    "findings",
    "A finding of an audit.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        rule_id STRING the rule
        severity STRING {allowed}
        consumer_group? STRING what the finding concerns
        topic? STRING what the finding concerns
        broker_name? STRING what the finding concerns
        queue_id? INT what the finding concerns
        client_id? STRING what the finding concerns
        first_ms? BIGINT the period of the finding
        last_ms? BIGINT the period of the finding
        summary STRING what is wrong, in one sentence
        evidence MAP<STRING, STRING> the values that show the finding
        remedy STRING what to do
        accepted? STRING the reason for accepting the finding; null: not accepted
        fingerprint? STRING the finding's id, the same in every run
        caused_by? STRING the fingerprint of the finding that causes this one
        """,
        severity=SEVERITIES,
    ),
)

GROUP_VERDICTS = Table(
    "group_verdicts",
    "Predicted and live ownership of a group, compared.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        verdict STRING {allowed}
        reason STRING for UNKNOWN the reason, for UNSTABLE what changed, otherwise empty
        looks INT number of observations compared
        differences INT number of queues that differ outside every window
        members INT number of processes at the end
        dumped_ms? BIGINT when ownership was last dumped
        unasked ARRAY<STRING> brokers that were not queried for the group's members
        settled_by? STRING for UNKNOWN, the file or command that would settle the verdict
        queues? INT number of readable queues in the last epoch; null: no ledger
        behind? BIGINT unread messages by the newest commits; null: unknown, or a broker is down
        moved? INT queues that received an owner after the night's first epoch; null: no ledger
        changed_ms? BIGINT start of the last epoch; null: no ledger
        dumps INT number of collected dumps of the group
        basis STRING {allowed}: the evidence for the group's members
        progress STRING {allowed}
        progress_reason? STRING why progress is UNKNOWN (docs/audit-rules.md)
        health STRING {allowed}
        """,
        verdict=tuple(VERDICTS),
        basis=tuple(BASES),
        progress=tuple(PROGRESS),
        health=tuple(HEALTH),
    ),
    key=("cluster", "consumer_group"),
)


LACKS = "lacks"
"""The evidence that distinguishes findings about one collection: what is missing from it, in the
same words every night."""


def fingerprint_of(finding: Mapping[str, object], about: str) -> str:
    """Return the fingerprint of a row of ``findings``.

    Clients are left out: a client that restarts has a new id. `LACKS` is included where a finding
    has it.

    Args:
        finding: a row.
        about: `BROKER` or `QUEUE` if its rule is about a broker or queue, else empty.

    >>> row = {"cluster": "c", "rule_id": "R", "broker_name": "a", "queue_id": 1}
    >>> fingerprint_of(row, "queue"), fingerprint_of(row, "") == fingerprint_of(row, "broker")
    ('7a568a93724fbee5', False)
    """
    names = ["cluster", "rule_id", "consumer_group", "topic"]
    names += {BROKER: ["broker_name"], QUEUE: ["broker_name", "queue_id"]}.get(about, [])
    values = [finding.get(name) for name in names]
    evidence: Any = finding.get("evidence") or ()
    values += [value for name, value in dict(evidence).items() if name == LACKS]
    text = json.dumps(values)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def by_cause(findings: Iterable[tuple[str | None, str | None]]) -> list[list[int]]:
    """Return lists of positions of findings, each a cause followed by what it caused, ordered by
    first position.

    A finding whose cause is missing starts a list of its own.

    Args:
        findings: the fingerprint of each, and what it is caused by.

    >>> by_cause([("a", "c"), ("b", None), ("c", None), ("d", "x")])
    [[2, 0], [1], [3]]
    """
    rows = list(findings)
    cause_of = dict(rows)
    lists: dict[int, list[int]] = {}
    place: dict[str | None, int] = {}
    following: list[tuple[str, int]] = []
    for position, (fingerprint, caused_by) in enumerate(rows):
        if caused_by is not None and caused_by in cause_of:
            following.append((caused_by, position))
        else:
            lists[position] = [position]
            place.setdefault(fingerprint, position)
    for cause, position in following:
        while cause_of[cause] in cause_of and cause not in place:
            cause = str(cause_of[cause])
        lists[place[cause]].append(position)
    return sorted(lists.values(), key=min)


POP_REACH = Table(
    "pop_reach",
    "Queues from which a client may take messages when members share the queues.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id; -1: any readable queue of the broker
        client_id STRING the client that may take messages
        from_epoch INT first epoch
        to_epoch? INT the first epoch after the period; null: open
        from_ms BIGINT start of from_epoch
        to_ms? BIGINT start of to_epoch; null: open
        """
    ),
    key=("cluster", "consumer_group", *QUEUE_KEY, "client_id", "from_epoch"),
)

POP_STARTS = Table(
    "pop_starts",
    "The offset at which the first pop from a queue starts, and the rule that decides it. There "
    "is one row per queue and epoch in which members begin to share the queue, unless all events "
    "of the epoch are OBSERVED.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        epoch INT the epoch in which members begin to share the queue
        change_ms BIGINT when the event happened
        earliest_ms BIGINT start of the window: the change takes effect no earlier
        latest_ms BIGINT end of the window: the group has settled by then
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        start_offset? BIGINT best estimate
        start_offset_low? BIGINT lowest and highest possible value in the window
        start_offset_high? BIGINT lowest and highest possible value in the window
        rule? STRING STORED, POP_MIN, POP_ZERO or POP_LAST (semantics.md); null: not known
        stored_offset? BIGINT newest value not later than earliest_ms
        min_offset? BIGINT newest value not later than earliest_ms
        max_offset? BIGINT newest value not later than earliest_ms
        skipped? BIGINT number of skipped messages (semantics.md)
        status STRING OK, or UNKNOWN: no observation decides the offset
        reason? STRING for UNKNOWN in an audit, the missing evidence (LOG_BEGINS, ...)
        """,
        status=START_STATUSES,
    ),
    key=("cluster", "consumer_group", "epoch", *QUEUE_KEY),
)

POP_METRICS = Table(
    "pop_metrics",
    "The combinations of clients and queues of a shared topic, per epoch.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        epoch INT the epoch
        topic STRING the topic
        clients INT distinct client ids that subscribe to the topic
        queues INT readable queues of the topic
        min_clients_per_queue INT clients that may take messages from one queue; 0 without queues
        max_clients_per_queue INT clients that may take messages from one queue; 0 without queues
        min_queues_per_client INT queues from which one client may take messages; 0 without clients
        max_queues_per_client INT queues from which one client may take messages; 0 without clients
        unreached INT readable queues from which certainly no client may take messages
        share_queue_num? INT the value in the topic's POP request mode; null: another mode
        ordered? BOOLEAN the group consumes in order
        """
    ),
    key=("cluster", "consumer_group", "epoch", "topic"),
)

QUEUE_STATES = Table(
    "queue_states",
    "Queues of shared topics, queues that are held although they cannot be read, and queues held "
    "by several processes with one client id. All other queues are readable, and each holder is "
    "the only process with its id.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        readable BOOLEAN the queue is in mqAll
        channel_ids ARRAY<STRING> holders that share a client id; null entry: the nameless process
        from_epoch INT first epoch
        to_epoch? INT the first epoch after the period; null: open
        """
    ),
    key=("cluster", "consumer_group", *QUEUE_KEY, "from_epoch"),
)


EPOCHS = Table(
    "epochs",
    "A period in which everything that a group's settled allocation depends on is constant.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        epoch INT epoch number per group, from 0 at its first CONSUMER_JOIN
        from_ms BIGINT start of the epoch
        to_ms? BIGINT end of the epoch; null: open
        causes ARRAY<STRING> distinct types of the epoch's events, by sequence
        members INT entries in cidAll, with duplicates
        distinct_members INT distinct client ids
        queues INT readable queues, retry topics included
        added INT ADD rows in diffs
        dropped INT DROP rows in diffs
        orphaned INT readable queues without an owner
        shared INT queues held by more than one process
        status STRING EMPTY (no member), FROZEN (a member could not allocate a topic) or SETTLED
        transient BOOLEAN the epoch ended before it had certainly settled
        pop_queues INT readable queues of topics that members share; not in any other count
        masterless_queues INT readable queues of brokers without a master
        """,
        status=EPOCH_STATUSES,
    ),
    key=("cluster", "consumer_group", "epoch"),
)

OWNERSHIP = Table(
    "ownership",
    "A continuous period in which a client holds a queue or the queue has no owner. No row means "
    "unknown.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        client_id? STRING the holder; null: no owner
        holders INT number of processes with this client id that hold the queue
        from_epoch INT first epoch
        to_epoch? INT the first epoch after the period; null: open
        from_ms BIGINT start of from_epoch
        to_ms? BIGINT start of to_epoch; null: open
        """
    ),
    key=("cluster", "consumer_group", *QUEUE_KEY, "client_id", "from_epoch"),
)

DIFFS = Table(
    "diffs",
    "A queue revoked or assigned at the start of an epoch.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        epoch INT the epoch that starts with this change
        change_ms BIGINT when the event happened
        earliest_ms BIGINT start of the window: the change takes effect no earlier
        latest_ms BIGINT end of the window: the group has settled by then
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        action STRING DROP or ADD
        client_id STRING the client that drops or adds the queue
        other_client_id? STRING the client with the opposite action, if there is only one
        kind STRING INITIAL, NEW, FORCED or VOLUNTARY
        cause STRING the first cause of the epoch
        """
    ),
    key=("cluster", "consumer_group", "epoch", *QUEUE_KEY, "action", "client_id"),
)

PULL_STARTS = Table(
    "pull_starts",
    "The offset at which the new owner of a queue starts to read, and the rule that decides it. "
    "There is one row per ADD that is not INITIAL.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        epoch INT the epoch that starts with this change
        change_ms BIGINT when the event happened
        earliest_ms BIGINT start of the window: the change takes effect no earlier
        latest_ms BIGINT end of the window: the group has settled by then
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        client_id STRING the new owner
        start_offset? BIGINT best estimate
        start_offset_low? BIGINT lowest and highest possible value in the window
        start_offset_high? BIGINT lowest and highest possible value in the window
        rule? STRING the ConsumeFromWhere rule that decided the offset
        stored_offset? BIGINT newest value not later than earliest_ms
        min_offset? BIGINT newest value not later than earliest_ms
        max_offset? BIGINT newest value not later than earliest_ms
        corrected_offset? BIGINT target of OFFSET_ILLEGAL for the first pull; null: none, or unknown
        skipped? BIGINT number of skipped messages (semantics.md)
        status STRING OK, FAILED, or UNKNOWN: no observation decides the offset
        reason? STRING for UNKNOWN in an audit, the missing evidence (LOG_BEGINS, ...)
        """,
        status=START_STATUSES,
    ),
    key=("cluster", "consumer_group", "epoch", *QUEUE_KEY, "client_id"),
)

MEMBERSHIPS = Table(
    "memberships",
    "A member's process over consecutive epochs with the same settings.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        client_id STRING the member
        channel_id? STRING the member's process; null: the nameless process
        subscriptions? ARRAY<STRING> the member's topics, in Java order; null: not known
        strategy STRING the member's strategy text
        version STRING the member's client version
        message_model STRING {allowed}
        suspended BOOLEAN the member is suspended
        rebalance_mode STRING {allowed}, as stated for the member, or otherwise for its group
        from_epoch INT first epoch
        to_epoch? INT the first epoch after the period; null: open
        from_ms BIGINT start of from_epoch
        to_ms? BIGINT start of to_epoch; null: open
        language? STRING the client's language; null: unknown, treated as JAVA
        """,
        message_model=MESSAGE_MODELS,
        rebalance_mode=REBALANCE_MODES,
    ),
    key=("cluster", "consumer_group", "client_id", "channel_id", "from_epoch"),
)

CONSUMER_LOAD = Table(
    "consumer_load",
    "The load of a process over consecutive epochs with the same load.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        client_id STRING the member
        from_epoch INT first epoch
        to_epoch? INT the first epoch after the period; null: open
        from_ms BIGINT start of from_epoch
        to_ms? BIGINT start of to_epoch; null: open
        topics INT topics with a queue, without retry topics
        queues INT queues held, without retry queues
        retry_queues INT retry queues held
        pull_threshold_for_queue INT limit per queue, in messages
        pull_threshold_size_for_queue INT limit per queue, in MiB
        idle BOOLEAN queues = 0 and shared_queues = 0
        suspended BOOLEAN the member is suspended
        shared_queues INT readable queues that the member shares
        """,
        {"idle": none_of("queues", "shared_queues")},
    ),
    key=("cluster", "consumer_group", "client_id", "from_epoch"),
)

GROUP_METRICS = Table(
    "group_metrics",
    "Queue moves and balance per epoch, for each topic and for the whole group (topic is null), "
    "without retry topics.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        epoch INT the epoch
        topic? STRING the topic; null: the whole group
        queues INT readable queues
        members INT distinct client ids that subscribe
        moved INT queues with an ADD, including new queues
        voluntary_moves INT queues with a VOLUNTARY ADD
        minimum_moves? INT proven minimum for a balanced result; null where it has no meaning
        amplification? DOUBLE moved / minimum_moves; null at 0
        stickiness? DOUBLE share of previously held queues that keep their holder
        max_queues INT most and fewest queues of one member
        min_queues INT most and fewest queues of one member
        peak_ratio? DOUBLE max_queues x members / queues
        idle_members INT members without a queue
        """,
        {"amplification": ratio("moved", "minimum_moves")},
    ),
    key=("cluster", "consumer_group", "epoch", "topic"),
)

REJECTED = Table(
    "rejected",
    "An input row that was not used, with the reason.",
    columns(
        """
        table_name STRING the input table
        source? STRING file:line, or file@byte
        raw STRING the row as it was read
        issues ARRAY<STRUCT<code: STRING, message: STRING>> what is wrong with the row
        """
    ),
)
UNKNOWN_MEMBER = "UNKNOWN_MEMBER"
"""The code of an event whose member does not exist, which only a replay or the kernels detect."""


SIMULATED_TABLES = {
    table.name: table
    for table in (
        EPOCHS,
        OWNERSHIP,
        DIFFS,
        PULL_STARTS,
        MEMBERSHIPS,
        CONSUMER_LOAD,
        GROUP_METRICS,
        POP_REACH,
        POP_METRICS,
        QUEUE_STATES,
        POP_STARTS,
    )
}
"""The tables that the replay of a group yields."""

LEDGER_TABLES = SIMULATED_TABLES | {REJECTED.name: REJECTED}
"""Everything `simulate` writes."""
