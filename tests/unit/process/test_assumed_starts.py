"""Where ConsumeFromWhere was assumed, the bounds of starts cover what any setting would give."""

from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.engine.options import engine_options
from rebalance_core.process.audit_cases import READ_TABLES, observed, read_cluster_tables
from rebalance_core.process.audit_pass import AuditPass, GroupFindings, audit_clusters
from tests.recordings.fleets import table_of

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
ASSUMED: dict[str, Any] = {
    **GROUP,
    "rule_id": "INGEST_ASSUMED",
    "severity": "INFO",
    "summary": "",
    "evidence": {"consume_from_where": "CONSUME_FROM_LAST_OFFSET"},
    "remedy": "",
    "fingerprint": "",
}


def seen(queue: dict[str, Any], at_ms: int, low: int, high: int) -> dict[str, Any]:
    return {**queue, "observed_ms": BEGIN_MS + at_ms, "min_offset": low, "max_offset": high}


def joins(client_id: str, at_ms: int, **fields: Any) -> dict[str, Any]:
    row = {**GROUP, "event_ms": BEGIN_MS + at_ms, "sequence": 0, "event_type": "CONSUMER_JOIN"}
    row |= {"client_id": client_id, "channel_id": client_id, "subscriptions": ["T"]}
    return row | fields


LOST: dict[str, Any] = {
    "cluster": "c",
    "sequence": 1,
    "event_type": "MASTER_DOWN",
    "broker_name": "a",
}
LOST |= {"event_ms": BEGIN_MS + 90_000, "detail": "REFUSED"}
LOOKS = (seen(QUEUE, 50_000, 20, 40), seen(QUEUE, 80_000, 20, 50), seen(QUEUE, 200_000, 30, 70))
OF_RETRY = (seen(RETRY, 80_000, 0, 9), seen(RETRY, 300_000, 2, 11))


def starts(
    settings: dict[str, Any],
    *more: dict[str, Any],
    looks: tuple[dict[str, Any], ...] = LOOKS,
    commits: tuple[dict[str, Any], ...] = (),
    found: tuple[dict[str, Any], ...] = (),
) -> list[dict[str, Any]]:
    """The rows of `pull_starts` that an audit writes of one group: x, then y take over."""
    made = {"cluster": "c", "event_ms": BEGIN_MS, "sequence": 0, "event_type": "TOPIC_CONFIG"}
    made |= {"topic": "T", "broker_name": "a", "read_queue_nums": 1, "write_queue_nums": 1}
    left = {**joins("x", 150_000), "event_type": "CONSUMER_LEAVE", "subscriptions": None}
    rows = {
        "cluster_events": [made, joins("x", 100_000), left, joins("y", 150_000, sequence=1), *more],
        "consumer_groups": [{**GROUP, **settings}],
        "queue_offsets": list(looks),
        "committed_offsets": list(commits),
    }
    return audited(rows, found)


def audited(
    rows: dict[str, list[dict[str, Any]]], found: tuple[dict[str, Any], ...]
) -> list[dict[str, Any]]:
    """The rows of `pull_starts` that an audit of these tables writes."""
    given = {
        name: pa.Table.from_batches([batch_of_rows(INPUT_TABLES[name], of_table)])
        for name, of_table in rows.items()
    }
    checked = check_tables(input_tables_of(given))
    others = observed({name: table_of(name, []) for name in READ_TABLES}).tables
    tables = {**checked.tables, **others, "findings": table_of("findings", list(found))}
    rules = audit_clusters(read_cluster_tables(tables)).groups
    passed = AuditPass(rules, engine_options(checked.tables)).rows(tables, GroupFindings())
    return [row for name, batch in passed if name == "pull_starts" for row in batch.to_pylist()]


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["epoch"], row["topic"], row["queue_id"], row["client_id"]


COMMIT = {**GROUP, **QUEUE, "observed_ms": BEGIN_MS + 95_000, "committed_offset": 33}
CASES: dict[str, dict[str, Any]] = {
    "nothing stored": {},
    "a retry topic with messages": {"looks": LOOKS + OF_RETRY},
    "nothing was seen": {"looks": ()},
    "seen once": {"looks": LOOKS[:2]},
    "zero may be answered": {"looks": (seen(QUEUE, 80_000, 0, 50), seen(QUEUE, 300_000, 0, 60))},
    "stored": {"commits": (COMMIT,)},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("taken_as", ["LAST", "FIRST", "HALFWAY"])
def test_bounds_cover_the_start_under_every_setting(case: str, taken_as: str) -> None:
    rows = starts(MODES[taken_as], found=(ASSUMED,), **CASES[case])
    assert len(rows) >= 2
    for settings in MODES.values():
        for mine, other in zip(
            sorted(rows, key=key), sorted(starts(settings, **CASES[case]), key=key), strict=True
        ):
            assert key(mine) == key(other)
            for offset in ("start_offset_low", "start_offset", "start_offset_high"):
                if other[offset] is None:
                    continue
                assert mine["start_offset_low"] is not None
                assert mine["start_offset_low"] <= other[offset]
                assert (
                    mine["start_offset_high"] is None
                    or other[offset] <= (mine["start_offset_high"])
                )


@pytest.mark.parametrize("case", CASES)
def test_the_estimate_stays(case: str) -> None:
    estimates = [
        [(key(row), row["start_offset"], row["skipped"], row["rule"], row["status"]) for row in of]
        for of in (
            starts(MODES["LAST"], found=(ASSUMED,), **CASES[case]),
            starts(MODES["LAST"], **CASES[case]),
        )
    ]
    assert estimates[0] == estimates[1]


def test_a_group_that_starts_nowhere_has_no_bounds() -> None:
    """Brokers assign to all members of this one, which ask them for messages by popping."""
    rows: dict[str, list[dict[str, Any]]] = {
        "cluster_events": [joins("x", 100_000, rebalance_mode="PROXY")],
        "consumer_groups": [{**GROUP, **MODES["LAST"], "rebalance_mode": "PROXY"}],
        "queue_offsets": list(LOOKS),
        "committed_offsets": [],
    }
    assert audited(rows, (ASSUMED,)) == []


def test_what_no_setting_changes_keeps_its_bounds() -> None:
    stored = [
        [
            row
            for row in starts(MODES["LAST"], found=found, commits=(COMMIT,))
            if row["topic"] == "T"
        ]
        for found in ((), (ASSUMED,))
    ]
    assert stored[0] == stored[1]
    assert {row["rule"] for row in stored[0]} == {"STORED"}
    elsewhere = {**ASSUMED, "consumer_group": "other"}
    strategy = {**ASSUMED, "evidence": {"strategy": "AVG"}}
    assert starts(MODES["LAST"], found=(elsewhere, strategy)) == starts(MODES["LAST"])


def test_a_start_that_fails_under_the_assumed_setting_alone_is_unknown() -> None:
    """No broker answers where the queue ends, which CONSUME_FROM_FIRST_OFFSET does not ask."""
    failed, row, first = (
        next(row for row in of if row["topic"] == "T")
        for of in (
            starts(MODES["LAST"], LOST),
            starts(MODES["LAST"], LOST, found=(ASSUMED,)),
            starts(MODES["FIRST"], LOST),
        )
    )
    assert (failed["status"], failed["rule"]) == ("FAILED", "QUERY_FAILED")
    assert (row["status"], row["rule"], row["start_offset"]) == ("UNKNOWN", None, None)
    bounds = ("start_offset_low", "start_offset_high")
    assert [row[name] for name in bounds] == [first[name] for name in bounds]
