"""An audit's findings as SARIF 2.1.0, for tools that track findings from run to run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.report.visible import visible
from rebalance_core.version import LIBRARY_VERSION

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow

TOOL = "rebalance-core"
"""The tool's name, which identifies such a file."""
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "rebalance/v1"
_LEVELS = {ERROR: "error", WARNING: "warning", INFO: "note"}
_PLACE = ("cluster", "consumer_group", "topic", "broker_name", "queue_id", "client_id")


def render_sarif(
    findings: Sequence[FindingsRow],
    meanings: Mapping[str, str],
    exit_code: int,
    states: Mapping[str | None, str] | None = None,
    rules_url: str | None = None,
) -> str:
    """Return the JSON of one run, with a result per finding; accepted findings are suppressed.

    A finding concerns a group, topic, broker or queue rather than a line of a file, so results have
    only logical locations.

    Args:
        findings: The findings to write.
        meanings: The meaning of each rule.
        exit_code: The job's exit code.
        states: ``new`` or ``unchanged`` since the previous run, by fingerprint; None if unknown.
        rules_url: The folder of the rules' pages; None for no links.
    """
    rules = sorted({row["rule_id"] for row in findings})
    number = {rule_id: index for index, rule_id in enumerate(rules)}
    driver = {
        "name": TOOL,
        "version": LIBRARY_VERSION,
        "rules": [_rule(rule_id, meanings.get(rule_id), rules_url) for rule_id in rules],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "exitCode": exit_code}],
        "results": [_result(row, number[row["rule_id"]], states or {}) for row in findings],
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _rule(rule_id: str, meaning: str | None, rules_url: str | None) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": rule_id}
    if meaning is not None:
        rule["shortDescription"] = {"text": meaning}
    if rules_url is not None:
        rule["helpUri"] = f"{rules_url.rstrip('/')}/{rule_id}/"
    return rule


def _result(
    finding: FindingsRow, rule_index: int, states: Mapping[str | None, str]
) -> dict[str, Any]:
    values: Mapping[str, Any] = {**finding}
    place = {name: values[name] for name in _PLACE if values[name] is not None}
    names = [visible(str(value)) for value in place.values()]
    shown: dict[str, Any] = {
        "ruleId": finding["rule_id"],
        "ruleIndex": rule_index,
        "level": _LEVELS[finding["severity"]],
        "message": {"text": f"{visible(finding['summary'])} {visible(finding['remedy'])}"},
        "locations": [
            {
                "logicalLocations": [
                    {"name": names[-1], "fullyQualifiedName": "/".join(names), "kind": "resource"}
                ]
            }
        ],
        "partialFingerprints": {FINGERPRINT: finding["fingerprint"]},
        "properties": {
            **{name: visible(v) if isinstance(v, str) else v for name, v in place.items()},
            "first_ms": finding["first_ms"],
            "last_ms": finding["last_ms"],
            "evidence": {k: visible(v) for k, v in finding["evidence"].items()},
        },
    }
    if finding["fingerprint"] in states:
        shown["baselineState"] = states[finding["fingerprint"]]
    if finding["accepted"] is not None:
        shown["suppressions"] = [
            {
                "kind": "external",
                "status": "accepted",
                "justification": visible(finding["accepted"]),
            }
        ]
    return shown
