"""What the findings come to, and the file for Prometheus."""

import pytest

from rebalance_core.audit.prometheus import render_metrics
from rebalance_core.audit.verdict import Count, verdict_of


def count(severity: str, *, accepted: bool = False, rule_id: str = "R") -> Count:
    return Count(rule_id, severity, accepted, 1)


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
    text = render_metrics('a"b\\\n', [count("ERROR")], {"EQUAL": 3}, "FAILED", 1_000_500, 2_000_000)
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
