"""The list of known issues: every entry fits a finding, and only such a one."""

from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.group_snapshot import AuditRun, GroupSnapshot, snapshot_rows
from rebalance_core.audit.known_issues import (
    KNOWN,
    Concerned,
    KnownIssue,
    in_range,
    known_issues,
    of_group,
    parse_known_issues,
    with_known,
)
from rebalance_core.audit.registry import ALL_RULES
from rebalance_core.model.errors import UsageError
from rebalance_core.model.group_settings import GroupSettings
from tests.tree import TREE
from tests.unit.audit.group_rows import fact
from tests.unit.audit.snapshots import join, judge_cluster, listed_at, snapshot_of, topic

SIMPLE = GroupSettings(consumer_type="PULL", rebalance_mode="PROXY")
RULE_IDS = {rule.rule_id for rule in ALL_RULES}
EACH = pytest.mark.parametrize("issue", known_issues(), ids=lambda issue: str(issue.id))
IN_RANGE, WRONG = "5.3.3", "0.0.1"
TEXT = """[[issue]]
id = "a/b#1"
url = "https://github.com/a/b/issues/1"
title = "t"
rules = ["ORPHAN_QUEUES"]
languages = ["JAVA"]
symptom = "s"
remedy = "r"
"""


def version_of(first: str | None, last: str | None) -> str:
    return last or first or IN_RANGE


def finding(issue: KnownIssue, rule: str | None = None) -> Any:
    """A finding that has all that the issue asks for."""
    return {
        "rule_id": rule or issue.rules[0],
        "summary": f"Something, {issue.summary} somewhere.",
        "evidence": {name: f"a {text} b" for name, text in issue.evidence.items()},
        "client_id": None,
        "broker_name": None,
    }


def concerned(issue: KnownIssue) -> Concerned:
    """Clients and brokers that have the issue."""
    language = issue.languages[0] if issue.languages else "JAVA"
    client = version_of(issue.client_from, issue.client_to)
    broker = version_of(issue.broker_from, issue.broker_to)
    settings: Any = {
        "ordered": bool(issue.ordered),
        "consumer_type": (issue.consumer_types or ("PUSH",))[0],
    }
    return Concerned({"a": broker}, {"c1": (language, client)}, settings)


def known(row: Any, whom: Concerned, *issues: KnownIssue) -> str:
    (found,) = with_known([row], whom, issues or None)
    return str(found["evidence"].get(KNOWN, ""))


@EACH
def test_it_fits_each_finding_it_names(issue: KnownIssue) -> None:
    for rule in issue.rules:
        text = known(finding(issue, rule), concerned(issue))
        assert issue.id in [one.partition(",")[0] for one in text.split("; ")]


@EACH
def test_it_fits_no_other_finding(issue: KnownIssue) -> None:
    whom, row = concerned(issue), finding(issue)
    assert known(row, whom, issue)
    assert known(row | {"rule_id": "IDLE_MEMBER"}, whom, issue) == ""
    if issue.languages:
        assert known(row, replace(whom, clients={"c1": ("RUBY", IN_RANGE)}), issue) == ""
        assert known(row, replace(whom, clients={}), issue) == ""
        assert known(row | {"client_id": "another"}, whom, issue) == ""
    if issue.client_from or issue.client_to:
        wrong = WRONG if issue.client_from else "99.0.0"
        assert known(row, replace(whom, clients={"c1": ("JAVA", wrong)}), issue) == ""
        assert known(row, replace(whom, clients={"c1": ("JAVA", None)}), issue) == ""
    if issue.broker_from or issue.broker_to:
        wrong = WRONG if issue.broker_from else "99.0.0"
        assert known(row, replace(whom, brokers={"a": wrong}), issue) == ""
        assert known(row, replace(whom, brokers={}), issue) == ""
    for name in issue.evidence:
        assert known(row | {"evidence": {}}, whom, issue) == "", name
    if issue.summary:
        assert known(row | {"summary": "nothing"}, whom, issue) == ""
    if issue.ordered is not None:
        settings: Any = {**(whom.settings or {}), "ordered": not issue.ordered}
        assert known(row, replace(whom, settings=settings), issue) == ""
    if issue.consumer_types:
        settings = {**(whom.settings or {}), "consumer_type": "PULL"}
        assert known(row, replace(whom, settings=settings), issue) == ""


def test_the_list_is_strict_and_of_several_clients() -> None:
    text = (TREE / "docs" / "known-issues.toml").read_text("utf-8")
    issues = parse_known_issues(text, "known-issues.toml", RULE_IDS)
    assert issues == known_issues()
    assert len(issues) >= 20
    languages = {language for issue in issues for language in issue.languages}
    assert languages >= {"JAVA", "GO", "CPP", "PYTHON"}
    packaged = TREE / "rebalance_core" / "audit" / "known_issues.toml"
    assert packaged.read_text("utf-8") == text, "run `make docs`"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[[issue]]", "[[issues]]", "holds issues; expected [[issue]]"),
        ('title = "t"\n', "", "title is missing"),
        ("symptom", "sympton", "unknown key sympton"),
        ('"s"', '" "', "symptom is ' ', expected a text"),
        ('"a/b#1"', '["a/b#1"]', "id is ['a/b#1'], expected a text"),
        ('"a/b#1"', '"#1"', "does not have the form <owner>/<repository>#<number>"),
        ("issues/1", "issues/2", "does not belong to a/b#1"),
        ("ORPHAN_QUEUES", "ORPHANS", "there is no rule ORPHANS"),
        ('["ORPHAN_QUEUES"]', "[]", "rules lists no finding"),
        ('"JAVA"', '"Java"', "'Java' is not a LanguageCode"),
        ('["JAVA"]', '["GO"]\nclient_to = "2.1.0"', "needs languages = ['JAVA']"),
        ('["JAVA"]', '["JAVA"]\nclient_to = "new"', "client_to is 'new', expected a version"),
        ('["JAVA"]', '["JAVA"]\nclient_from = "5.0.0"\nclient_to = "4.9.8"', "5.0.0 is after"),
        ('["JAVA"]', '["JAVA"]\nordered = "yes"', "ordered is 'yes', expected true or false"),
        ('["JAVA"]', '["JAVA"]\nevidence = { a = 1 }', "expected a table of strings"),
        ('["JAVA"]', '"JAVA"', "languages is 'JAVA', not a list of texts"),
        ("[[issue]]", "[[issue]", "not TOML"),
        (TEXT, "issue = [1]", "holds issue; expected [[issue]]"),
    ],
)
def test_mistakes_are_named(old: str, new: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_known_issues(TEXT.replace(old, new, 1), "f.toml", RULE_IDS)
    assert message in str(refused.value)
    assert "f.toml" in str(refused.value)


def test_every_mistake_is_named_and_an_id_stands_once() -> None:
    with pytest.raises(UsageError) as refused:
        parse_known_issues(TEXT + TEXT + TEXT.replace('title = "t"\n', ""), "f.toml")
    assert [line.partition(": ")[2] for line in str(refused.value).splitlines()] == [
        "its id appears twice",
        "title is missing",
        "its id appears twice",
    ]


@pytest.mark.parametrize(
    ("version", "first", "last", "within"),
    [
        ("5.2.0", "5.2.0", "5.2.0", True),
        ("5.10.0", "5.2.0", None, True),
        ("4.9.8", None, "5.0.0", True),
        ("5.2", "5.2.0", "5.2.0", True),
        ("5.1.4", "5.2.0", None, False),
        ("5.2.1", None, "5.2.0", False),
        ("HIGHER.VERSION", "5.2.0", None, False),
        (None, None, "5.2.0", False),
        (None, None, None, True),
    ],
)
def test_ranges(version: str | None, first: str | None, last: str | None, within: bool) -> None:
    assert in_range(version, first, last) is within


def test_a_finding_of_a_group_names_it_with_the_versions_seen() -> None:
    happened = [topic(), topic("U"), join("c1", "T"), join("c2", "U")]
    group = snapshot_of(*happened, members=listed_at("a", 900, "c1", "c2"))
    run = replace(group.run, versions={"a": "5.3.3"})
    rows = run_rules(replace(group, run=run))["findings"]
    (row,) = (row for row in rows if row["rule_id"] == "INCONSISTENT_SUBSCRIPTION")
    assert row["evidence"][KNOWN] == "apache/rocketmq#5473, broker 5.3.3"
    assert [r["rule_id"] for r in rows if "#5473" in r["evidence"].get(KNOWN, "")] == [
        "INCONSISTENT_SUBSCRIPTION"
    ]


def test_a_finding_on_the_cluster_names_it() -> None:
    facts = [
        fact("NAME_SERVER_FILE", 10, details={"name": "n1"}),
        fact("NAME_SERVER_FILE", 10, details={"name": "n2"}),
        fact(
            "BROKER_REGISTERED", 10, broker_name="a", details={"name": "n1", "registered": "true"}
        ),
    ]
    _, rows = judge_cluster(facts, [], [], 6.0)
    (row,) = (row for row in rows if row["rule_id"] == "NAME_SERVERS_DIFFER")
    assert row["evidence"][KNOWN] == "apache/rocketmq#4807, broker of any version"


@pytest.mark.parametrize("turned", [False, True])
def test_what_any_dump_states_of_a_client_counts(turned: bool) -> None:
    stated = {"language": "JAVA", "version": "5.2.0", "observed_ms": 1_000}
    later = {"language": None, "version": None, "observed_ms": 2_000}
    dumps = [{"client_id": "c", "source": "f"} | one for one in (stated, later)]
    rows: Any = {"observed_members": dumps[::-1] if turned else dumps}
    found = of_group(GroupSnapshot("C", "g", AuditRun(0, 9_000), snapshot_rows(rows)))
    assert found.clients == {"c": ("JAVA", "5.2.0")}


def test_a_grpc_client_is_known_by_the_language_that_its_proxy_logged() -> None:
    """Its settings may be lost with the proxy that restarted (rocketmq-clients#1137)."""
    go = snapshot_of(
        topic(), replace(join("x"), rebalance_mode="PROXY", language="GO"), settings=SIMPLE
    )
    assert of_group(go).clients == {"x": ("GO", None)}
    begun = {
        "rule_id": "OFFLINE_WITH_LAG",
        "client_id": None,
        "broker_name": None,
        "summary": "",
        "evidence": {"popped": "8", "servers": "proxy-1 restarted"},
    }
    rows: Any = [begun]
    (row,) = with_known(rows, of_group(go))
    assert row["evidence"][KNOWN] == "apache/rocketmq-clients#1137, client GO"
