"""What is missing of an audit run: incomplete is never green."""

from typing import Any

import pytest

from rebalance_core.audit.completeness import audit_run_of
from rebalance_core.audit.judge import judge_cluster, missing_of_groups, missing_reason
from tests.unit.audit.comparison.group_rows import fact

HOUR = 3_600_000
END = 100 * HOUR


def broker_files(name: str, at_ms: int = END) -> list[dict[str, Any]]:
    kinds = ("log", "store")
    return [fact("BROKER_FILE", at_ms, broker_name=name, details={"file": k}) for k in kinds]


def dump(command: str, at_ms: int = END, broker: str | None = None) -> dict[str, Any]:
    return fact("DUMP", at_ms, broker_name=broker, details={"command": command})


WHOLE = [
    fact("COLLECTED", END),
    fact("EXPECTED_BROKER", END, broker_name="a"),
    fact("EXPECTED_BROKER", END, broker_name="b"),
    fact("EXPECTED_NAME_SERVER", END, details={"name": "n1"}),
    fact("NAME_SERVER_FILE", END, details={"name": "n1"}),
    *broker_files("a"),
    *broker_files("b"),
]
DUMPS = [dump("consumerStatus"), dump("consumerConnection", broker="a")]


def summaries(
    facts: list[dict[str, Any]], dumps: list[dict[str, Any]], down: str = ""
) -> list[str]:
    _, findings = audit_run_of(facts, dumps, frozenset(down), 6.0)
    return [one.summary for one in findings]


def test_a_whole_collection_has_nothing_missing() -> None:
    run, findings = audit_run_of(WHOLE, DUMPS, frozenset(), 6.0)
    assert findings == []
    assert (run.end_ms, run.missing) == (END, frozenset())


def test_an_expected_broker_without_files_is_missing() -> None:
    facts = [row for row in WHOLE if row["kind"] != "BROKER_FILE" or row["broker_name"] != "b"]
    run, (findings,) = audit_run_of(facts, DUMPS, frozenset(), 6.0)
    assert (findings.broker_name, run.missing) == ("b", frozenset("b"))
    assert "expects" in findings.summary


def test_a_broker_that_only_the_cluster_lists_is_missing_too() -> None:
    (text,) = summaries([*WHOLE, fact("BROKER_IN_CLUSTER", END, broker_name="c")], DUMPS)
    assert "clusterList lists it" in text


def test_a_store_without_the_log_is_not_enough() -> None:
    facts = [
        r for r in WHOLE if not (r["broker_name"] == "b" and r["details"].get("file") == "log")
    ]
    (text,) = summaries(facts, DUMPS)
    assert "broker.log of b" in text


@pytest.mark.parametrize(("down", "missing"), [("", 1), ("b", 0)])
def test_stale_files_of_a_broker_count_unless_it_is_down(down: str, missing: int) -> None:
    facts = [row for row in WHOLE if row["broker_name"] != "b" or row["kind"] != "BROKER_FILE"]
    findings = summaries([*facts, *broker_files("b", END - 24 * HOUR)], DUMPS, down)
    assert len(findings) == missing


def test_a_name_server_without_its_log_is_named() -> None:
    (text,) = summaries([*WHOLE, fact("EXPECTED_NAME_SERVER", END, details={"name": "n2"})], DUMPS)
    assert "n2 missing" in text


def test_dumps_that_nobody_made_and_dumps_of_yesterday() -> None:
    none = summaries(WHOLE, [])
    assert len(none) == 2
    assert all("no dump" in text.lower() for text in none)
    old = [dump("consumerProgress", END - 25 * HOUR), dump("consumerConnection")]
    (text,) = summaries(WHOLE, old)
    assert "25 h old" in text


def test_a_collection_that_is_old_as_a_whole() -> None:
    _, rows = judge_cluster(WHOLE, DUMPS, [], 6.0, END + HOUR)
    assert [row["rule_id"] for row in rows] == ["COLLECTION_INCOMPLETE"]
    assert rows[0]["severity"] == "ERROR"
    assert judge_cluster(WHOLE, DUMPS, [], 6.0, END - HOUR)[1] == []


def test_groups_without_what_others_have_are_counted_in_one_finding() -> None:
    unknown = {"verdict": "UNKNOWN", "reason": "NO_DUMP", "unasked": []}
    assert missing_reason(unknown) == "NO_DUMP"
    assert missing_reason({"verdict": "EQUAL", "reason": "", "unasked": []}) is None
    assert missing_reason({"verdict": "EQUAL", "reason": "", "unasked": ["b"]}) == "UNASKED"
    (row,) = missing_of_groups({"NO_DUMP": (30, ["g1", "g2"])}, compared=5)
    assert "30 online groups, each without a dump" in row["summary"]
    assert "and 28 more" in row["summary"]
    assert missing_of_groups({"NO_DUMP": (30, ["g1"])}, compared=0) == []
