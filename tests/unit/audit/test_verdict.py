"""The verdict over all findings, and the file for Prometheus."""

from typing import Any

import pytest

from rebalance_core.audit.counted_findings import Count
from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.audit.metrics import render_metrics
from rebalance_core.audit.outcome import audit_outcome, verdict_of


def count(severity: str, *, accepted: bool = False, rule_id: str = "R") -> Count:
    return Count(rule_id, severity, accepted, 1)


def finding(cluster: str, severity: str, rule_id: str = "R") -> Any:
    return {
        "cluster": cluster,
        "rule_id": rule_id,
        "severity": severity,
        "accepted": None,
        "fingerprint": f"{cluster} {rule_id} {severity}",
        "caused_by": None,
    }


@pytest.mark.parametrize(
    ("counts", "fail_on", "expected"),
    [
        ([], "ERROR", ("OK", False)),
        ([count("INFO")], "ERROR", ("OK", False)),
        ([count("INFO")], "INFO", ("FAILED", True)),
        ([count("WARNING")], "ERROR", ("FINDINGS", False)),
        ([count("WARNING")], "WARNING", ("FAILED", True)),
        ([count("ERROR")], "ERROR", ("FAILED", True)),
        ([count("ERROR", accepted=True)], "INFO", ("OK", False)),
        ([count("ERROR", rule_id="COLLECTION_INCOMPLETE")], "ERROR", ("INCOMPLETE", True)),
    ],
)
def test_the_verdict_and_whether_the_job_fails(
    counts: list[Count], fail_on: str, expected: tuple[str, bool]
) -> None:
    assert verdict_of(counts, fail_on) == expected


def test_metrics_are_in_the_text_format_and_escape_names() -> None:
    found = [finding('a"b\\\n', "ERROR")]
    verdicts: Any = [
        {
            "cluster": 'a"b\\\n',
            "verdict": "EQUAL",
            "consumer_group": "g",
            "basis": "LEDGER",
            "progress": "MOVES",
            "health": "STALLED",
            "behind": 7,
        }
    ] * 3
    runs = {'a"b\\\n': AuditRun(0, 1_000_500)}
    stalled = {('a"b\\\n', "g"): 1_234_567, ("another", "g"): 9}
    orphaned = {('a"b\\\n', "g"): 1_234_567_891, ("another", "g"): 9}
    outcome = audit_outcome(found, verdicts, runs, "ERROR")
    text = render_metrics(outcome.clusters, 2_000_000, stalled, orphaned)
    assert text.endswith("\n")
    lines = text.splitlines()
    assert (
        'rebalance_audit_findings{cluster="a\\"b\\\\\\n",rule_id="R",severity="ERROR",'
        'accepted="false"} 1'
    ) in lines
    assert 'rebalance_audit_groups{cluster="a\\"b\\\\\\n",verdict="EQUAL"} 3' in lines
    assert 'rebalance_audit_groups_progress{cluster="a\\"b\\\\\\n",progress="MOVES"} 3' in lines
    assert 'rebalance_audit_unread_messages{cluster="a\\"b\\\\\\n",group="g"} 7' in lines
    assert 'rebalance_audit_groups_health{cluster="a\\"b\\\\\\n",health="STALLED"} 3' in lines
    assert 'rebalance_audit_groups_health{cluster="a\\"b\\\\\\n",health="BEHIND"} 0' in lines
    assert (
        'rebalance_audit_group_health{cluster="a\\"b\\\\\\n",group="g",health="STALLED"} 1'
    ) in lines
    assert [line for line in lines if line.startswith("rebalance_audit_stalled_queues")] == [
        'rebalance_audit_stalled_queues{cluster="a\\"b\\\\\\n",group="g"} 1234567'
    ]
    assert [line for line in lines if line.startswith("rebalance_audit_orphan")] == [
        'rebalance_audit_orphan_queue_seconds{cluster="a\\"b\\\\\\n",group="g"} 1234567.891'
    ]
    assert [line[-1] for line in lines if "rebalance_audit_verdict{" in line] == list("0010")
    assert any(line.endswith("} 1000") for line in lines)
    named = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(named) == len(set(named)) == 11


@pytest.mark.parametrize(
    ("metric", "unit"), [("stalled_queues", 1), ("orphan_queue_seconds", 1000)]
)
def test_counts_of_the_groups_with_the_most(metric: str, unit: int) -> None:
    counts = {("c", f"g{number:02}"): number * unit for number in range(60)}
    counts |= {("c", "TOOLS_CONSUMER"): 1_000 * unit}
    given = (counts, {}) if metric == "stalled_queues" else ({}, counts)
    outcome = audit_outcome([], [], {"c": AuditRun(0, 1)}, "ERROR")
    lines = render_metrics(outcome.clusters, 0, *given).splitlines()
    samples = dict(line.split("} ") for line in lines if f"{metric}{{" in line)
    assert len(samples) == 51
    name = f'rebalance_audit_{metric}{{cluster="c",group="'
    assert float(samples[f'{name}g59"']) == 59
    assert float(samples[f'{name}(others)"']) == sum(range(10))


def test_each_cluster_by_itself() -> None:
    found = [finding("a", "ERROR"), finding("b, c", "WARNING"), finding("b, c", "INFO")]
    verdicts: Any = [
        {
            "cluster": "a",
            "verdict": "DIFFERS",
            "consumer_group": "g",
            "basis": "LEDGER",
            "progress": "MOVES",
            "health": "OK",
            "behind": 7,
        },
        {
            "cluster": "a",
            "verdict": "OFFLINE",
            "consumer_group": "TOOLS_CONSUMER",
            "basis": "DUMPS",
            "progress": "UNKNOWN",
            "health": "OFFLINE",
        },
        {
            "cluster": "d",
            "verdict": "EQUAL",
            "consumer_group": "g",
            "basis": "DUMPS",
            "progress": "MOVES",
            "health": "OK",
            "behind": 7,
        },
    ]
    runs = {"a": AuditRun(1_000, 5_000), "b, c": AuditRun(2_000, 9_000)}
    whole = audit_outcome(found, verdicts, runs, "ERROR")
    assert (whole.verdict, whole.start_ms, whole.end_ms) == ("FAILED", 1_000, 9_000)
    record = whole.record()["clusters"]
    assert {name: one["verdict"] for name, one in record.items()} == {
        "a": "FAILED",
        "b, c": "FINDINGS",
        "d": "OK",
    }
    assert record["b, c"]["findings"] == {"R": {"INFO": 1, "WARNING": 1}}
    assert (record["a"]["groups"], record["a"]["end_ms"]) == ({"DIFFERS": 1}, 5_000)
    lines = render_metrics(whole.clusters, 0, {}, {}).splitlines()
    labels = {
        line.partition('cluster="')[2].partition('",')[0].partition('"}')[0]
        for line in lines
        if not line.startswith("#")
    }
    assert labels == {"a", "b, c", "d"}
    assert sum(line.startswith("# TYPE") for line in lines) == 11
    assert 'rebalance_audit_verdict{cluster="b, c",verdict="FINDINGS"} 1' in lines
    assert 'rebalance_audit_collection_end_seconds{cluster="a"} 5' in lines
