"""What the findings come to, and the file for Prometheus."""

import pytest

from rebalance_core.audit.case import AuditRun
from rebalance_core.audit.outcome import Count, audit_outcome, render_metrics, verdict_of


def count(severity: str, *, accepted: bool = False, rule_id: str = "R") -> Count:
    return Count(rule_id, severity, accepted, 1)


def finding(cluster: str, severity: str, rule_id: str = "R") -> dict[str, str | None]:
    return {
        "cluster": cluster, "rule_id": rule_id, "severity": severity, "accepted": None,
        "fingerprint": f"{cluster} {rule_id} {severity}", "caused_by": None,
    }  # fmt: skip


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
    verdicts = [{"cluster": 'a"b\\\n', "verdict": "EQUAL", "consumer_group": "g"}] * 3
    runs = {'a"b\\\n': AuditRun(0, 1_000_500)}
    text = render_metrics(audit_outcome(found, verdicts, runs, "ERROR").clusters, 2_000_000)
    assert text.endswith("\n")
    lines = text.splitlines()
    assert (
        'rebalance_audit_findings{cluster="a\\"b\\\\\\n",rule_id="R",severity="ERROR",'
        'accepted="false"} 1'
    ) in lines
    assert 'rebalance_audit_groups{cluster="a\\"b\\\\\\n",verdict="EQUAL"} 3' in lines
    assert [line[-1] for line in lines if "rebalance_audit_verdict{" in line] == list("0010")
    assert any(line.endswith("} 1000") for line in lines)
    named = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(named) == len(set(named)) == 5


def test_each_cluster_by_itself() -> None:
    found = [finding("a", "ERROR"), finding("b, c", "WARNING"), finding("b, c", "INFO")]
    verdicts = [
        {"cluster": "a", "verdict": "DIFFERS", "consumer_group": "g"},
        {"cluster": "a", "verdict": "OFFLINE", "consumer_group": "TOOLS_CONSUMER"},
        {"cluster": "d", "verdict": "EQUAL", "consumer_group": "g"},
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
    lines = render_metrics(whole.clusters, 0).splitlines()
    labels = {line.partition('cluster="')[2].partition('",')[0].partition('"}')[0]
              for line in lines if not line.startswith("#")}  # fmt: skip
    assert labels == {"a", "b, c", "d"}
    assert sum(line.startswith("# TYPE") for line in lines) == 5
    assert 'rebalance_audit_verdict{cluster="b, c",verdict="FINDINGS"} 1' in lines
    assert 'rebalance_audit_collection_end_seconds{cluster="a"} 5' in lines
