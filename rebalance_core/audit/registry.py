"""Every rule of the audit, and what each finding means."""

from __future__ import annotations

from rebalance_core.audit.comparison_findings import COMPARISON_RULES
from rebalance_core.audit.group_snapshot import Rule
from rebalance_core.audit.rules import CLUSTER_RULES, RULES
from rebalance_core.ingest.rows import FINDING_IDS
from rebalance_core.model import verdicts

RULE_FAILED = Rule(
    "RULE_FAILED",
    verdicts.ERROR,
    "A bug in the audit made a rule, or the comparison with live ownership, fail for a group. "
    "The other rules ran, but what the failed rule would have reported is unknown.",
    "the rule itself",
    "Report the bug with the finding's evidence, and accept the finding for the group until it "
    "is fixed.",
)


ALL_RULES: tuple[Rule, ...] = (
    *CLUSTER_RULES,
    *COMPARISON_RULES.values(),
    *RULES,
    RULE_FAILED,
)
"""Every rule of the audit; those of `ingest` are in docs/ingest.md."""


MEANINGS = FINDING_IDS | {rule.rule_id: rule.meaning for rule in ALL_RULES}
"""What each finding means, including those of `ingest`."""
