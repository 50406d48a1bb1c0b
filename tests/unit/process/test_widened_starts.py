"""Bounds of starts cover any setting that was assumed, and any time of an observation in doubt."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.audit.coverage import UNSURE_MS, Coverage, LogSpan, coverage_of
from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.contracts import INGESTED_TABLES, INPUT_TABLES
from rebalance_core.contracts.observed import CLOCK_UNSURE
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.engine.fan_out import fan_out
from rebalance_core.engine.ledger_pass import ledger_pass
from rebalance_core.engine.options import engine_options
from rebalance_core.ingest.collection import OFFSETS
from rebalance_core.process.audit_pass import AuditPass, GroupFindings, audit_clusters
from rebalance_core.process.group_snapshots import READ_TABLES, observed, read_cluster_tables
from rebalance_core.process.widened_starts import WidenedStarts
from tests.recordings.fleets import table_of
from tests.unit.audit.snapshots import broker_logs

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
    observations: tuple[dict[str, Any], ...] = LOOKS,
    commits: tuple[dict[str, Any], ...] = (),
    found: tuple[dict[str, Any], ...] = (),
) -> list[dict[str, Any]]:
    """The rows of `pull_starts` that an audit writes of one group: x, then y take over."""
    return audited(tables_of(settings, *more, observations=observations, commits=commits), found)


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


def audited(
    rows: Any,
    found: tuple[dict[str, Any], ...],
) -> list[dict[str, Any]]:
    """The rows of `pull_starts` that an audit of these tables writes."""
    checked = checked_tables(rows)
    others = observed({name: table_of(name, []) for name in READ_TABLES}).tables
    tables = {**checked, **others, "findings": table_of("findings", list(found))}
    rules = audit_clusters(read_cluster_tables(tables)).groups
    passed = AuditPass(rules, engine_options(checked)).rows(tables, GroupFindings())
    return [row for name, batch in passed if name == "pull_starts" for row in batch.to_pylist()]


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
    rows: Any = {
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


# Observations of dumps and copies whose clock was off: they may be of any time in its error.

ERROR_MS = 60_000
LATER = {**COMMIT, "observed_ms": BEGIN_MS + 170_000, "committed_offset": 44}
DATED: dict[str, dict[str, Any]] = {
    "nothing stored": {},
    "zero may be answered": CASES["zero may be answered"],
    "stored, and later": {"commits": (COMMIT, LATER)},
    "seen once": CASES["seen once"],
}


def widened(
    settings: dict[str, Any],
    errors: dict[int, int],
    logs: Coverage | None = None,
    **seen_of: tuple[dict[str, Any], ...],
) -> list[dict[str, Any]]:
    """The starts of `starts`, by moment how far off the observations of it may be."""
    tables = checked_tables(tables_of(settings, **seen_of))
    engine = engine_options(tables)
    grouped = fan_out(tables)
    some = grouped.tables_of(0, len(grouped))
    errors = {BEGIN_MS + at_ms: ms for at_ms, ms in errors.items()}
    coverage = replace(logs or Coverage(), named_error_ms=errors)
    unsure = WidenedStarts(None, {"c": AuditRun(0, 900_000, coverage=coverage)})
    made = unsure.widened(ledger_pass(some, engine, names_encoded=True), some, engine)
    rows = [row for name, of in made if name == "pull_starts" for row in of.to_pylist()]
    return sorted(rows, key=key)


def moved(rows: tuple[dict[str, Any], ...], by_ms: int) -> tuple[dict[str, Any], ...]:
    return tuple({**row, "observed_ms": row["observed_ms"] + by_ms} for row in rows)


@pytest.mark.parametrize("case", DATED)
@pytest.mark.parametrize("mode", ["LAST", "HALFWAY"])
def test_bounds_cover_the_start_at_every_time_of_the_observations(case: str, mode: str) -> None:
    observations, commits = DATED[case].get("observations", LOOKS), DATED[case].get("commits", ())
    errors = {row["observed_ms"] - BEGIN_MS: ERROR_MS for row in (*observations, *commits)}
    rows = widened(MODES[mode], errors, observations=observations, commits=commits)
    assert rows
    for by_ms in range(-ERROR_MS, ERROR_MS + 1, 15_000):
        others = widened(
            MODES[mode], {}, observations=moved(observations, by_ms), commits=moved(commits, by_ms)
        )
        for mine, other in zip(rows, others, strict=True):
            low, high = mine["start_offset_low"], mine["start_offset_high"]
            for offset in ("start_offset_low", "start_offset", "start_offset_high"):
                if other[offset] is not None:
                    assert low is not None, (key(mine), by_ms)
                    assert low <= other[offset], (key(mine), by_ms)
                    assert high is None or other[offset] <= high, (key(mine), by_ms)


def test_observations_of_clocks_that_agree_keep_the_bounds() -> None:
    sure = widened(MODES["LAST"], {}, commits=(COMMIT,))
    assert widened(MODES["LAST"], {96_000: ERROR_MS}, commits=(COMMIT,)) == sure
    unsure = widened(MODES["LAST"], {95_000: ERROR_MS, 200_000: ERROR_MS}, commits=(COMMIT,))
    estimates = [[(row["start_offset"], row["status"]) for row in of] for of in (sure, unsure)]
    assert unsure != sure
    assert estimates[0] == estimates[1]


def test_without_any_log_no_bounds_are_looked_for() -> None:
    """No start has bounds there, so that nothing has to be simulated again."""
    errors = {95_000: ERROR_MS, 200_000: ERROR_MS}
    sure = widened(MODES["LAST"], {}, commits=(COMMIT,))
    bare = Coverage(broker_logs(a=()), known=True)
    assert widened(MODES["LAST"], errors, bare, commits=(COMMIT,)) == sure
    logged = Coverage(broker_logs(a=[LogSpan(0, 900_000, from_start=True)]), known=True)
    assert widened(MODES["LAST"], errors, logged, commits=(COMMIT,)) != sure


def test_a_commit_that_a_client_logged_is_dated_by_its_log() -> None:
    mine = {**COMMIT, "client_id": "x", "observed_ms": BEGIN_MS + 120_000}
    sure = widened(MODES["LAST"], {}, commits=(mine,))
    assert widened(MODES["LAST"], {120_000: ERROR_MS}, commits=(mine,)) == sure


def test_dumps_and_copies_of_clocks_that_are_off_are_in_doubt() -> None:
    row: Any = dict.fromkeys(INGESTED_TABLES["coverage"].column_names)
    dump = row | {"role": "ADMIN", "kind": "admin", "from_ms": 1_000, "clock_error_ms": 20_000}
    copy = row | {"role": "BROKER", "kind": OFFSETS, "from_ms": 2_000, "note": CLOCK_UNSURE}
    log = row | {"role": "BROKER", "kind": "broker_log", "from_ms": 3_000, "clock_error_ms": 700}
    sure = row | {"role": "ADMIN", "kind": "admin", "from_ms": 4_000}
    found = coverage_of([dump, copy, log, sure], {}).named_error_ms
    assert found == {1_000: 20_000, 2_000: UNSURE_MS}
