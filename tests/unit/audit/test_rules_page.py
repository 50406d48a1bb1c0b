"""What docs/audit-rules.md is generated from."""

from rebalance_core.audit.findings import ALL_RULES
from rebalance_core.model.verdicts import SEVERITIES


def test_every_rule_is_whole_and_there_once() -> None:
    ids = [rule.rule_id for rule in ALL_RULES]
    assert len(ids) == len(set(ids))
    for rule in ALL_RULES:
        assert rule.severity in SEVERITIES
        assert rule.rule_id == rule.rule_id.upper()
        assert all(text.endswith(".") for text in (rule.meaning, rule.remedy)), rule.rule_id
        assert rule.seen_by
