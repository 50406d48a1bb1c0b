"""Bounds of starts cover any setting that was assumed."""

from typing import Any

import pytest

from rebalance_core.engine.options import engine_options
from rebalance_core.process.audit_pass import AuditPass, GroupFindings, audit_clusters
from rebalance_core.process.cluster_tables import read_cluster_tables
from rebalance_core.process.observed_tables import READ_TABLES, observed
from tests.recordings.fleets import table_of
from tests.unit.process.widened_tables import (
    BEGIN_MS,
    CASES,
    COMMIT,
    GROUP,
    LOOKS,
    MODES,
    checked_tables,
    joins,
    key,
    tables_of,
)

ASSUMED: dict[str, Any] = {
    **GROUP,
    "rule_id": "INGEST_ASSUMED",
    "severity": "INFO",
    "summary": "",
    "evidence": {"consume_from_where": "CONSUME_FROM_LAST_OFFSET"},
    "remedy": "",
    "fingerprint": "",
}


LOST: dict[str, Any] = {
    "cluster": "c",
    "sequence": 1,
    "event_type": "MASTER_DOWN",
    "broker_name": "a",
}
LOST |= {"event_ms": BEGIN_MS + 90_000, "detail": "REFUSED"}


def starts(
    settings: dict[str, Any],
    *more: dict[str, Any],
    observations: tuple[dict[str, Any], ...] = LOOKS,
    commits: tuple[dict[str, Any], ...] = (),
    found: tuple[dict[str, Any], ...] = (),
) -> list[dict[str, Any]]:
    """The rows of `pull_starts` that an audit writes of one group: x, then y take over."""
    return audited(tables_of(settings, *more, observations=observations, commits=commits), found)


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
