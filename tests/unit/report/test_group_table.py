"""Rows of the page's table of groups."""

from typing import Any

from rebalance_core.contracts.ledger import FINDINGS, GROUP_VERDICTS
from rebalance_core.report.group_table import group_rows

STILL_MS, BEHIND_MS = 1_795_219_200_000, 1_795_219_000_000


def verdict(group: str, progress: str) -> Any:
    row = dict.fromkeys(GROUP_VERDICTS.column_names)
    return row | {
        "cluster": "c",
        "consumer_group": group,
        "verdict": "EQUAL",
        "reason": "",
        "members": 1,
        "progress": progress,
    }


def finding(group: str, rule_id: str, first_ms: int, **evidence: str) -> Any:
    row = dict.fromkeys(FINDINGS.column_names)
    return row | {
        "cluster": "c",
        "consumer_group": group,
        "rule_id": rule_id,
        "severity": "INFO",
        "first_ms": first_ms,
        "evidence": evidence,
    }


def test_a_slow_group_has_the_time_since_when_and_its_rates() -> None:
    verdicts = [
        verdict("still", "STANDS_STILL"),
        verdict("late", "FALLS_BEHIND"),
        verdict("fine", "MOVES"),
    ]
    findings = [
        finding("still", "COMMIT_STANDS_STILL", STILL_MS + 1),
        finding("still", "COMMIT_STANDS_STILL", STILL_MS),
        finding("late", "FALLS_BEHIND", BEHIND_MS, deleted_unread="9"),
        finding("late", "FALLS_BEHIND", BEHIND_MS, arrive_per_second="160", read_per_second="40"),
        finding("fine", "START_SKIPPED", 1),
    ]
    rows = {row.consumer_group: row for row in group_rows(verdicts, findings, lambda _: False)}
    shown = {name: (row.slow_since_ms, row.rates) for name, row in rows.items()}
    assert shown == {
        "still": (STILL_MS, None),
        "late": (BEHIND_MS, ("160", "40")),
        "fine": (None, None),
    }
