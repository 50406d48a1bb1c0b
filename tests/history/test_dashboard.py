"""The bundled dashboard and alert rules ask for metrics and labels that metrics.prom has."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.audit.metrics import render_metrics as metrics_of_audit
from rebalance_core.audit.outcome import audit_outcome
from rebalance_core.contracts.bundled_files import bundled
from rebalance_core.history.metrics import render_metrics as metrics_of_history

FILES = bundled("prometheus")
RULES = FILES["rebalance.rules.yml"].read_text("utf-8")
DASHBOARD = json.loads(FILES["rebalance.dashboard.json"].read_text("utf-8"))
ALERTS = re.findall(r"^ +- alert: (\w+)\n +expr: (.*)\n((?: {8}.*\n)+)", RULES, re.MULTILINE)
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"]}


def written() -> dict[str, set[str]]:
    """Return the labels of each metric of an audit and a history in which each has a sample."""
    finding: Any = {"cluster": "c", "rule_id": "R", "severity": "ERROR", "accepted": None}
    finding |= {"fingerprint": "f", "caused_by": None}
    verdict: Any = {"cluster": "c", "consumer_group": "g", "verdict": "EQUAL", "basis": "LEDGER"}
    verdict |= {"progress": "MOVES", "health": "STALLED", "behind": 7}
    outcome = audit_outcome([finding], [verdict], {"c": AuditRun(0, 1)}, "ERROR")
    text = metrics_of_audit(outcome.clusters, 1, {("c", "g"): 2}, {("c", "g"): 3})
    night: Any = {"cluster": "c", "end_ms": 5, "complete": True}
    group: Any = {"cluster": "c", "consumer_group": "g", "behind": 1, "epochs": 1, "moved": 1}
    group |= {"orphan_ms": 1, "shared_ms": 1}
    found = finding | {"state": "NEW", "owner": "team"}
    text += metrics_of_history([night], [group], [found])
    labels: dict[str, set[str]] = {}
    for name, braces in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        labels[name] = set(re.findall(r'(\w+)="', braces))
    kinds = re.findall("^# TYPE (.*) gauge$", text, re.MULTILINE)
    assert set(labels) == set(kinds)
    return labels


METRICS = written()


def asked(query: str) -> tuple[set[str], set[str]]:
    """Return the metrics and the labels that a query names."""
    selected = re.findall(r"\{(.*?)\}", query)
    labels = {label for text in selected for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", text)}
    for text in re.findall(r"\bby \((.*?)\)", query):
        labels |= set(text.split(", "))
    return set(re.findall(r"\brebalance_\w+", query)), labels


def refuse_unknown(query: str) -> Mapping[str, set[str]]:
    names, labels = asked(query)
    assert names, query
    assert names <= METRICS.keys(), query
    for name in names:
        assert labels <= METRICS[name], query
    return {name: METRICS[name] for name in names}


@pytest.mark.parametrize("title", PANELS)
def test_a_panel_asks_for_what_is_written(title: str) -> None:
    panel = PANELS[title]
    assert panel["targets"]
    assert panel["description"].endswith(".")
    for target in panel["targets"]:
        known = refuse_unknown(target["expr"])
        kept = re.search(r"\bby \((.*?)\)", target["expr"])
        left = set(kept[1].split(", ")) if kept else set.union(*known.values())
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= left
        assert 'cluster=~"$cluster"' in target["expr"] or "left_out" in target["expr"]


def test_the_dashboard_shows_every_metric_that_changes() -> None:
    queries = " ".join(t["expr"] for panel in PANELS.values() for t in panel["targets"])
    shown, _ = asked(queries)
    assert METRICS.keys() - shown == {
        "rebalance_audit_collection_end_seconds",
        "rebalance_audit_finished_seconds",
        "rebalance_audit_groups_progress",
        "rebalance_audit_orphan_queue_seconds",  # counted as rebalance_history_orphan_queue_seconds
        "rebalance_history_unread_messages",  # the same groups as rebalance_audit_unread_messages
    }


def test_panels_do_not_overlap_and_variables_exist() -> None:
    assert len(PANELS) == len(DASHBOARD["panels"])
    cells = [
        (x, y)
        for panel in PANELS.values()
        for grid in [panel["gridPos"]]
        for x in range(grid["x"], grid["x"] + grid["w"])
        for y in range(grid["y"], grid["y"] + grid["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD["panels"])))
    assert used == variables
    refuse_unknown(DASHBOARD["templating"]["list"][1]["definition"])


@pytest.mark.parametrize(("name", "query", "rest"), ALERTS, ids=[alert[0] for alert in ALERTS])
def test_an_alert_waits_has_a_severity_and_names_what_it_knows(
    name: str, query: str, rest: str
) -> None:
    assert name.startswith("Rebalance")
    known = refuse_unknown(query)
    assert re.search(r"^ +for: [1-9]\d*[mh]$", rest, re.MULTILINE)
    assert re.search(r"^ +severity: (page|ticket)$", rest, re.MULTILINE)
    kept = re.search(r"\bby \((.*?)\)", query)
    left = set(kept[1].split(", ")) if kept else set.union(*known.values())
    assert set(re.findall(r"\$labels\.(\w+)", rest)) <= left


def test_every_alert_was_read() -> None:
    assert len(ALERTS) == RULES.count("- alert:") == 6
