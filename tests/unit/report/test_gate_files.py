"""What change gates and tickets read: JUnit XML, SARIF, Markdown."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from rebalance_core.audit.changes import Changes, failing_findings
from rebalance_core.audit.completeness import COLLECTION_INCOMPLETE
from rebalance_core.cli.main import main
from rebalance_core.contracts import AUDITED_TABLES
from rebalance_core.report.audit_junit import OF_CLUSTER, render_junit
from rebalance_core.report.sarif import FINGERPRINT, render_sarif
from tests.recordings.tables import DATA

PATHOLOGIES = DATA / "pathologies" / "collection"


INCOMPLETE = COLLECTION_INCOMPLETE.rule_id


def finding(rule_id: str, severity: str, group: str | None = "g", **columns: Any) -> Any:
    row: dict[str, Any] = dict.fromkeys(AUDITED_TABLES["findings"].column_names)
    own = {"fingerprint": f"{rule_id} {group}", "evidence": {}, "summary": "S.", "remedy": "R."}
    about = {"cluster": "c", "rule_id": rule_id, "severity": severity, "consumer_group": group}
    return {**row, **own, **about, **columns}


def verdict(group: str, word: str = "EQUAL", **columns: Any) -> Any:
    row: dict[str, Any] = dict.fromkeys(AUDITED_TABLES["group_verdicts"].column_names)
    return {**row, "cluster": "c", "consumer_group": group, "verdict": word, **columns}


def suites(findings: list[Any], verdicts: list[Any] | None = None, fail_on: str = "ERROR") -> Any:
    failing = {row["fingerprint"] for row in failing_findings(findings, fail_on)}
    return ET.fromstring(render_junit(findings, verdicts or [], failing, ["c"], 0, INCOMPLETE))


def test_a_group_fails_for_what_fails_the_run() -> None:
    found = [finding("A", "WARNING"), finding("B", "ERROR"), finding("C", "INFO", "other")]
    root = suites(found, [verdict("g"), verdict("other"), verdict("equal")])
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("4", "1", "0")
    failure = root.find(".//testcase[@name='g']/failure")
    assert (failure.get("type"), failure.get("message")) == ("B", "S.")
    assert root.find(".//testcase[@name='other']/failure") is None
    assert "INFO C: S." in root.find(".//testcase[@name='other']/system-out").text
    assert list(root.find(".//testcase[@name='equal']")) == []


def test_what_fails_follows_the_severity_and_the_acceptances() -> None:
    found = [finding("A", "WARNING"), finding("B", "ERROR", "x", accepted="known")]
    assert suites(found).get("failures") == "0"
    assert suites(found, fail_on="WARNING").get("failures") == "1"


def test_an_incomplete_collection_is_an_error_whatever_is_asked() -> None:
    missing = finding(INCOMPLETE, "WARNING", None)
    root = suites([finding("A", "ERROR", None), missing])
    assert (root.get("errors"), root.get("failures")) == ("1", "0")
    assert root.find(f".//testcase[@name='{OF_CLUSTER}']/error") is not None
    nothing_new = Changes((), (), (), (), ())
    assert failing_findings([missing], "ERROR", nothing_new, "WARNING") == [missing]


def test_an_unknown_group_is_skipped_with_what_settles_it() -> None:
    unknown = verdict("g", "UNKNOWN", reason="NO_DUMP", settled_by="consumerConnection -b a")
    root = suites([], [unknown])
    skipped = root.find(".//skipped").get("message")
    assert skipped == "UNKNOWN: NO_DUMP; consumerConnection -b a"


def test_names_from_outside_cannot_break_either_file() -> None:
    name = 'g"><\x00\ud800\u202e]]>'
    rows = [finding("A", "ERROR", name, summary=name, evidence={"x": name}, fingerprint="f")]
    root = suites(rows)
    assert [case.get("name") for case in root.iter("testcase")][1] == ('g"><\\x00\\ud800\\u202e]]>')
    result = json.loads(render_sarif(rows, {}, 3).encode())["runs"][0]["results"][0]
    assert result["properties"]["consumer_group"] == 'g"><\\x00\\ud800\\u202e]]>'


def test_sarif_has_levels_places_states_and_acceptances() -> None:
    new, still = finding("A", "ERROR", queue_id=3, topic="T"), finding("A", "WARNING", "h")
    known = finding("B", "INFO", None, accepted="until Friday")
    states: dict[str | None, str] = {"A g": "new", "A h": "unchanged"}
    text = render_sarif([new, still, known], {"A": "what A is"}, 3, states, "https://x/rules/")
    run = json.loads(text)["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["A", "B"]
    rule = run["tool"]["driver"]["rules"][0]
    assert rule["shortDescription"] == {"text": "what A is"}
    assert rule["helpUri"] == "https://x/rules/A/"
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 3}]
    first, second, third = run["results"]
    assert [r["level"] for r in run["results"]] == ["error", "warning", "note"]
    place = first["locations"][0]["logicalLocations"][0]
    assert place["fullyQualifiedName"] == "c/g/T/3"
    assert first["partialFingerprints"] == {FINGERPRINT: "A g"}
    assert (first["baselineState"], second["baselineState"]) == ("new", "unchanged")
    assert "baselineState" not in third
    assert third["suppressions"][0]["justification"] == "until Friday"
    assert third["ruleIndex"] == 1


def audit(tmp_path: Path, *words: object) -> int:
    paths = ("--collection", PATHOLOGIES, "--output", tmp_path / "out")
    return main("audit", [str(word) for word in (*paths, *words)])


def test_an_audit_writes_both_files_and_a_ticket(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit, sarif = tmp_path / "audit.xml", tmp_path / "audit.sarif"
    words = ("--junit", junit, "--sarif", sarif, "--format", "markdown")
    assert audit(tmp_path, *words) == 3
    ticket = capsys.readouterr().out
    assert ticket.startswith("# Audit of DefaultCluster: FAILED\n")
    assert "| ERROR | `MIXED_STRATEGIES` | p-mixed |" in ticket
    assert "**What to do:** Set the same AllocateMessageQueueStrategy" in ticket
    root = ET.parse(junit).getroot()
    failed = [
        case.get("name") for case in root.iter("testcase") if case.find("failure") is not None
    ]
    assert failed == ["p-mixed", "p-topics", "p-unsub"]
    results = json.loads(sarif.read_text("utf-8"))["runs"][0]["results"]
    assert {"MIXED_STRATEGIES", "IDLE_MEMBER"} <= {result["ruleId"] for result in results}

    assert audit(tmp_path, "--junit", junit) == 5
    assert "--junit" in capsys.readouterr().err
    again = ("--junit", junit, "--sarif", sarif, "--overwrite")
    junit.write_text(junit.read_text("utf-8").replace('failures="3"', 'failures="9"'), "utf-8")
    assert audit(tmp_path, *again) == 3
    assert ET.parse(junit).getroot().get("failures") == "3"
    capsys.readouterr()
    sarif.write_text("notes of mine")
    assert audit(tmp_path, *again) == 5
    assert f"--sarif {sarif}: audit did not write this file" in capsys.readouterr().err
    assert sarif.read_text() == "notes of mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--junit", "/none/x.xml"), "--junit /none/x.xml: no such folder"),
        (("--sarif", "/"), "--sarif /: is a folder"),
        (("--junit", "a", "--sarif", "a"), "name the same file"),
        (("--json", "--format", "markdown"), "--json and --format exclude each other"),
        (("--format", "html"), "one of text, markdown"),
    ],
)
def test_a_wrong_file_or_format_ends_with_2_before_anything_is_read(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(tmp_path, *words) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
