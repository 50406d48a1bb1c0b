"""Verdicts of the audit's comparison of predicted with observed ownership, and the reasons."""

from typing import Final

EQUAL: Final = "EQUAL"
DIFFERS: Final = "DIFFERS"
UNSTABLE: Final = "UNSTABLE"
UNKNOWN: Final = "UNKNOWN"
OFFLINE: Final = "OFFLINE"
VERDICTS = {
    EQUAL: "every observation of the last round of dumps shows the predicted owners",
    DIFFERS: "an observation outside every window shows others",
    UNSTABLE: "the group changed while it was dumped, or had not settled; nothing else differs",
    UNKNOWN: "nothing can be compared; the reason says why",
    OFFLINE: "no member at the end; nothing to compare",
}

NO_DUMP: Final = "NO_DUMP"
STALE_DUMP: Final = "STALE_DUMP"
INCOMPLETE: Final = "INCOMPLETE"
STRATEGY: Final = "STRATEGY"
POP: Final = "POP"
COMPARISON_FAILED: Final = "COMPARISON_FAILED"
REASONS = {
    NO_DUMP: "no dump shows who holds the group's queues",
    STALE_DUMP: "the newest dump of the group's ownership is not of this night",
    INCOMPLETE: "a broker of the group's topics, or its answer, is missing",
    STRATEGY: "the group's strategy or its parameters are not known",
    POP: "members pop a topic of the group: its queues are shared, nobody owns one alone",
    COMPARISON_FAILED: ("the comparison itself failed; the group's finding RULE_FAILED says how"),
}
"""Why a verdict is UNKNOWN; the text is part of the finding OWNERSHIP_UNKNOWN."""
