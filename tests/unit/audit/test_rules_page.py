"""docs/audit-rules.md says what the code says."""

from pathlib import Path

from rebalance_core.audit.finding import SEVERITIES
from rebalance_core.audit.judge import ALL_RULES
from rebalance_core.audit.rules_page import rules_page

TREE = Path(__file__).resolve().parents[3]


def test_the_page_is_the_generated_one() -> None:
    assert (TREE / "docs/audit-rules.md").read_text() == rules_page()


def test_every_rule_is_whole_and_there_once() -> None:
    ids = [rule.rule_id for rule in ALL_RULES]
    assert len(ids) == len(set(ids))
    for rule in ALL_RULES:
        assert rule.severity in SEVERITIES
        assert rule.rule_id == rule.rule_id.upper()
        assert all(text.endswith(".") for text in (rule.meaning, rule.remedy)), rule.rule_id
        assert rule.seen_by
