"""The table that shows how far each group has read each queue."""

from dataclasses import replace
from typing import Final

from rebalance_core.contracts.table import QUEUE_KEY, Table, columns
from rebalance_core.model.verdicts import LITE_TOPIC

NO_COMMIT: Final = "NO_COMMIT"
NO_END: Final = "NO_END"
END_BELOW_COMMIT: Final = "END_BELOW_COMMIT"
COMMIT_FELL: Final = "COMMIT_FELL"
READ_APART: Final = "READ_APART"
PROGRESS_REASONS = {
    NO_COMMIT: "no file has a commit of the group on the queue",
    NO_END: "no file has the queue's end",
    END_BELOW_COMMIT: "the end is below the commit: the two were read at different moments, or "
    "the store was lost",
    COMMIT_FELL: "the commit is below another from more than a minute earlier: it was reset, or "
    "a store's copy is older than assumed; unread is a bound",
    READ_APART: "end and commit were read more than a minute apart: unread is a bound",
    LITE_TOPIC: "the topic is of type LITE: clients commit on the lite topics inside it, so "
    "nothing shows what is unread",
}
"""Why a figure in `queue_progress` is unknown or only a bound."""

_PROGRESS = """
    cluster STRING the RocketMQ cluster
    consumer_group STRING the group
    topic STRING the topic
    broker_name STRING the broker
    queue_id INT the queue id on that broker
    client_id? STRING the holder at the end, see above; null: no member, several, or not known
    committed? BIGINT the newest offset that the group committed
    committed_ms? BIGINT when that offset was last seen
    end_offset? BIGINT the next offset to be written
    end_ms? BIGINT when that end was seen
    unread? BIGINT messages from the commit to the end, at least 0; null: not known
    commit_rate? DOUBLE messages per second, over the longest time by one clock without a decrease
    end_rate? DOUBLE messages per second, as above
    still_since_ms? BIGINT start of the time in which the end grows but the commit does not
    expires_ms? BIGINT earliest deletion time of the oldest unread message; null: not known
    reason? STRING {allowed}
    """

QUEUE_PROGRESS = Table(
    "queue_progress",
    "How far a group has read a queue at the end, and how fast commit and end move. A "
    "broadcasting group has no row because its members keep their own offsets. The holder is the "
    "owner at the end of the ledger or, in the output of `ingest`, the owner that the newest "
    "dumps show.",
    columns(_PROGRESS, reason=tuple(PROGRESS_REASONS)),
    key=("cluster", "consumer_group", *QUEUE_KEY),
)

PROGRESS_TABLES: dict[str, Table] = {QUEUE_PROGRESS.name: QUEUE_PROGRESS}

SNAPSHOT_PROGRESS = replace(
    QUEUE_PROGRESS,
    columns=(
        *QUEUE_PROGRESS.columns,
        *columns(
            """
            unread_before? BIGINT upper bound at the last end with none unread, else at the first
            unread_before_ms? BIGINT when that was
            stored_ms? BIGINT earliest store time of the oldest unread message; null: not known
            waits_since_ms? BIGINT the commit has not moved since, so messages may wait since then
            last_below_ms? BIGINT when the commit was last seen lower; null: never
            """
        ),
    ),
)
"""The row in the snapshot of a group."""
