"""The tables of `history`: nightly audits, combined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from rebalance_core.contracts.table import Table, columns
from rebalance_core.model.verdicts import RUN_VERDICTS, SEVERITIES, VERDICTS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import OpenFindingsRow

NEW: Final = "NEW"
OPEN: Final = "OPEN"
REOPENED: Final = "REOPENED"
HEALED: Final = "HEALED"
GONE: Final = "GONE"
NOT_LOOKED_AT: Final = "NOT_LOOKED_AT"
ACCEPTED: Final = "ACCEPTED"
SNOOZED: Final = "SNOOZED"
FindingState = Literal[
    "NEW", "OPEN", "REOPENED", "HEALED", "GONE", "NOT_LOOKED_AT", "ACCEPTED", "SNOOZED"
]
FINDING_STATES: tuple[FindingState, ...] = (
    NEW,
    OPEN,
    REOPENED,
    HEALED,
    GONE,
    NOT_LOOKED_AT,
    ACCEPTED,
    SNOOZED,
)
"""The state of a finding in the last night of its cluster: first seen, seen before, seen again
after it had ended, shown by the night to have ended, checked and absent, not checked, accepted,
accepted until a date.
"""
OVER: tuple[FindingState, ...] = (HEALED, GONE)

OF_GROUP: Final = "GROUP"
OF_HOST: Final = "HOST"

NIGHTS = Table(
    "nights",
    "An audit of one cluster.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        end_ms BIGINT end of the audited period, and of the night
        run_id STRING the run id in `_run.json`
        start_ms BIGINT start: the end of the previous night, or the start of the audited period
        verdict STRING {allowed}
        complete BOOLEAN nothing was missing from the collection
        missing ARRAY<STRING> what was missing: summaries of COLLECTION_INCOMPLETE findings
        errors INT number of open findings of severity ERROR
        warnings INT number of open findings of severity WARNING
        infos INT number of open findings of severity INFO
        groups MAP<STRING, INT> number of groups by verdict
        library_version STRING version of rebalance-core
        """,
        verdict=tuple(RUN_VERDICTS),
    ),
    key=("cluster", "end_ms"),
)

GROUP_NIGHTS = Table(
    "group_nights",
    "A group in one night, without earlier nights. Moves exclude the group's first epoch.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        end_ms BIGINT end of the audited period
        run_id STRING the run id, as in nights
        verdict STRING {allowed}
        reason? STRING for UNKNOWN the reason, for UNSTABLE what changed
        members_first INT members at the start of the night or in the first epoch; 0 without epochs
        members_last INT members in the last epoch
        joins INT processes that joined after the first epoch
        leaves INT processes that left
        losses INT processes that were lost
        epochs INT epochs that began
        transient INT epochs that ended before they settled
        moved BIGINT queues that received an owner, after the first epoch
        minimum_moves? BIGINT proven minimum of moved
        busiest INT most queues of one member in the last epoch
        idle INT members without a queue in the last epoch
        orphan_ms BIGINT queues x ms without an owner while the group had members
        shared_ms BIGINT queues x ms with more than one holder
        behind? BIGINT as in group_verdicts
        worst_skipped? BIGINT largest number of messages skipped by one new owner
        worst_replayed? BIGINT largest number of messages read again by one new owner
        settle_p99_ms? BIGINT 99th percentile of this night's slowest change, by propagate
        """,
        verdict=tuple(VERDICTS),
    ),
    key=("cluster", "consumer_group", "end_ms"),
)

OPEN_FINDINGS = Table(
    "open_findings",
    "A finding above INFO from any night, and its state in the last night.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        fingerprint STRING the fingerprint in findings
        rule_id STRING the rule
        consumer_group? STRING the group concerned
        topic? STRING the topic concerned
        broker_name? STRING the broker concerned
        owner? STRING the team in --owners; null: no pattern matches
        state STRING {allowed}
        first_night_ms BIGINT end_ms of the first night
        opened_night_ms? BIGINT of the night that found it first or again; null: perhaps earlier
        last_seen_ms BIGINT end_ms of the last night that found it
        nights_seen INT number of nights that found it
        nights_unseen INT number of nights since then that did not check it
        over_night_ms? BIGINT for HEALED and GONE, end_ms of the night that shows it
        reopened INT number of times that the finding was reopened
        severity STRING severity in the last night that found it: {allowed}
        summary STRING the finding's summary in that night
        remedy STRING the finding's remedy in that night
        caused_by? STRING the fingerprint of the finding that causes this one
        """,
        state=FINDING_STATES,
        severity=SEVERITIES,
    ),
    key=("cluster", "fingerprint"),
)


def subject_of(row: OpenFindingsRow) -> str:
    """Return what a row of ``open_findings`` is about: the first of its group, broker and topic, or
    the cluster.
    """
    names = row["consumer_group"], row["broker_name"], row["topic"]
    return next((name for name in names if name is not None), row["cluster"])


FLAPS = Table(
    "flaps",
    "A group or host whose processes come and go, either in close succession or at the same hour.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        subject_kind STRING {allowed}
        subject STRING the group, or the part of client ids before @
        from_ms BIGINT first hour that counts
        to_ms BIGINT end of the last hour that counts
        joins_per_hour DOUBLE joins per hour in the hours that count
        leaves_per_hour DOUBLE leaves and losses per hour in the same hours
        share_of_nights DOUBLE share of nights with such an hour, of those that observed the subject
        recurring_hours ARRAY<INT> hours of the day, UTC, at which changes recur
        first_mover? STRING for GROUP, the host that most often changes first
        """,
        subject_kind=(OF_GROUP, OF_HOST),
    ),
    key=("cluster", "subject_kind", "subject"),
)

HISTORY_TABLES = {table.name: table for table in (NIGHTS, GROUP_NIGHTS, OPEN_FINDINGS, FLAPS)}
"""Everything `history` writes."""
