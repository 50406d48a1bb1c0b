"""Tables of small histories in which starts are looked for under every assumed setting."""

from typing import Any

import pyarrow as pa

from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.table import batch_of_rows

BEGIN_MS = 1_790_000_000_000
GROUP = {"cluster": "c", "consumer_group": "g"}
QUEUE = {"cluster": "c", "topic": "T", "broker_name": "a", "queue_id": 0}
RETRY = {**QUEUE, "topic": "%RETRY%g"}
MODES: dict[str, dict[str, Any]] = {
    "LAST": {"consume_from_where": "CONSUME_FROM_LAST_OFFSET"},
    "FIRST": {"consume_from_where": "CONSUME_FROM_FIRST_OFFSET"},
    "BEFORE_ALL": {"consume_from_where": "CONSUME_FROM_TIMESTAMP", "consume_timestamp_ms": 0},
    "HALFWAY": {
        "consume_from_where": "CONSUME_FROM_TIMESTAMP",
        "consume_timestamp_ms": BEGIN_MS + 60_000,
    },
    "AFTER_ALL": {
        "consume_from_where": "CONSUME_FROM_TIMESTAMP",
        "consume_timestamp_ms": 2 * BEGIN_MS,
    },
}


def seen(queue: dict[str, Any], at_ms: int, low: int, high: int) -> dict[str, Any]:
    return {**queue, "observed_ms": BEGIN_MS + at_ms, "min_offset": low, "max_offset": high}


def joins(client_id: str, at_ms: int, **fields: Any) -> dict[str, Any]:
    row = {**GROUP, "event_ms": BEGIN_MS + at_ms, "sequence": 0, "event_type": "CONSUMER_JOIN"}
    row |= {"client_id": client_id, "channel_id": client_id, "subscriptions": ["T"]}
    return row | fields


LOOKS = (seen(QUEUE, 50_000, 20, 40), seen(QUEUE, 80_000, 20, 50), seen(QUEUE, 200_000, 30, 70))
OF_RETRY = (seen(RETRY, 80_000, 0, 9), seen(RETRY, 300_000, 2, 11))


def tables_of(
    settings: dict[str, Any],
    *more: dict[str, Any],
    observations: tuple[dict[str, Any], ...] = LOOKS,
    commits: tuple[dict[str, Any], ...] = (),
) -> Any:
    made = {"cluster": "c", "event_ms": BEGIN_MS, "sequence": 0, "event_type": "TOPIC_CONFIG"}
    made |= {"topic": "T", "broker_name": "a", "read_queue_nums": 1, "write_queue_nums": 1}
    left = {**joins("x", 150_000), "event_type": "CONSUMER_LEAVE", "subscriptions": None}
    return {
        "cluster_events": [made, joins("x", 100_000), left, joins("y", 150_000, sequence=1), *more],
        "consumer_groups": [{**GROUP, **settings}],
        "queue_offsets": list(observations),
        "committed_offsets": list(commits),
    }


def checked_tables(rows: Any) -> dict[str, pa.Table]:
    given = {
        name: pa.Table.from_batches([batch_of_rows(INPUT_TABLES[name], of_table)])
        for name, of_table in rows.items()
    }
    return dict(check_tables(input_tables_of(given)).tables)


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["epoch"], row["topic"], row["queue_id"], row["client_id"]


COMMIT = {**GROUP, **QUEUE, "observed_ms": BEGIN_MS + 95_000, "committed_offset": 33}
CASES: dict[str, dict[str, Any]] = {
    "nothing stored": {},
    "a retry topic with messages": {"observations": LOOKS + OF_RETRY},
    "nothing was seen": {"observations": ()},
    "seen once": {"observations": LOOKS[:2]},
    "zero may be answered": {
        "observations": (seen(QUEUE, 80_000, 0, 50), seen(QUEUE, 300_000, 0, 60))
    },
    "stored": {"commits": (COMMIT,)},
}
