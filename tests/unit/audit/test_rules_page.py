"""What docs/audit-rules.md is generated from, and the threads that other pages cite."""

import re

from rebalance_core.audit.registry import ALL_RULES
from rebalance_core.model.verdicts import SEVERITIES
from tests.tree import TREE


def test_every_rule_is_whole_and_there_once() -> None:
    ids = [rule.rule_id for rule in ALL_RULES]
    assert len(ids) == len(set(ids))
    for rule in ALL_RULES:
        assert rule.severity in SEVERITIES
        assert rule.rule_id == rule.rule_id.upper()
        assert all(text.endswith(".") for text in (rule.meaning, rule.remedy)), rule.rule_id
        assert rule.seen_by


def test_threads_are_of_rules_that_there_are() -> None:
    page = (TREE / "docs/rocketmq.md").read_text("utf-8")
    table = page.partition("## 11. Pathologies")[2].partition("## 12.")[0]
    rows = [line for line in table.splitlines() if re.match(r"\| `", line)]
    named = [re.findall(r"`([A-Z_]+)`", row) for row in rows]
    assert len(named) == 24
    assert all(named)
    assert {one for row in named for one in row} <= {rule.rule_id for rule in ALL_RULES}
