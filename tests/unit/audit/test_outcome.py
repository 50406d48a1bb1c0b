"""Which findings are counted, kept and shown."""

from collections.abc import Mapping
from typing import Any

import pytest

from rebalance_core.audit.counted_findings import (
    Count,
    capped,
    count_findings,
    shown_first,
    to_accept,
    worst_groups,
)
from rebalance_core.audit.not_looked_at import not_looked_at

Row = Any

WHERE = ("topic", "broker_name", "queue_id", "client_id", "first_ms", "last_ms")


def finding(rule: str, severity: str, group: str | None, **more: Any) -> Row:
    row = {"cluster": "c", "rule_id": rule, "severity": severity, "consumer_group": group}
    return row | dict.fromkeys(WHERE) | {"summary": "s", "remedy": "r", "accepted": None} | more


@pytest.fixture
def findings() -> list[Row]:
    return [
        finding("B", "WARNING", "g1"),
        finding("A", "INFO", "g1"),
        finding("A", "ERROR", "g2", topic="U"),
        finding("A", "ERROR", "g2", topic="T"),
        finding("A", "ERROR", "g0", accepted="known"),
        finding("B", "WARNING", None),
        finding("B", "WARNING", "g3"),
        finding("B", "WARNING", "g3"),
    ]


def place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["rule_id"], row["consumer_group"], row["topic"]


def test_counts(findings: list[Row]) -> None:
    assert count_findings(findings) == [
        Count("A", "ERROR", False, 2),
        Count("A", "ERROR", True, 1),
        Count("A", "INFO", False, 1),
        Count("B", "WARNING", False, 4),
    ]


def test_open_findings_are_shown_first_then_the_worst_and_none_is_before_a_name(
    findings: list[Row],
) -> None:
    assert [place(row) for row in shown_first(findings, 5)] == [
        ("A", "g2", "T"),
        ("A", "g2", "U"),
        ("B", None, None),
        ("B", "g1", None),
        ("B", "g3", None),
    ]
    assert shown_first(findings, 100)[-1]["accepted"] == "known"


def test_some_of_each_rule_of_a_cluster_are_kept(findings: list[Row]) -> None:
    other = finding("A", "INFO", "g9", cluster="d")
    assert [(row["cluster"], *place(row)) for row in capped([*findings, other], 1)] == [
        ("c", "A", "g2", "T"),
        ("c", "B", None, None),
        ("d", "A", "g9", None),
    ]
    assert len(capped(findings, 100)) == len(findings)


def test_groups_with_errors_are_worse_than_those_with_more_findings(findings: list[Row]) -> None:
    assert worst_groups(findings, 2) == [("c", "g2"), ("c", "g3")]
    assert worst_groups(findings, 9) == [("c", "g2"), ("c", "g3"), ("c", "g1")]


def test_what_is_accepted_is_named_once_and_only_if_it_is_open(findings: list[Row]) -> None:
    named = [(row["rule_id"], row["consumer_group"], row["topic"]) for row in to_accept(findings)]
    assert sorted(named, key=str) == sorted(
        [
            ("B", "g1", None),
            ("A", "g2", "U"),
            ("A", "g2", "T"),
            ("B", None, None),
            ("B", "g3", None),
        ],
        key=str,
    )


def test_a_log_of_which_only_the_begin_is_known_is_no_stretch() -> None:
    """The contract lets ``to_ms`` be null: what is not known is not looked at, and no error."""
    row: Any = {"host": "a", "role": "BROKER", "kind": "broker_log", "complete": True, "note": None}
    whole, begun = row | {"from_ms": 0, "to_ms": 60_000}, row | {"from_ms": 70_000, "to_ms": None}
    assert not_looked_at([whole, begun]) == not_looked_at([whole])
    assert "anything before" not in not_looked_at([begun])
