"""Topics of type LITE (5.5): clients subscribe lite topics inside them, one by one.

Which client reads which of them is in no file that operators copy, so it is said and left at that.
"""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.rows import Row, finding

LITE = "LITE"
TYPE_ATTRIBUTES = ("message.type", "+message.type")
"""As a broker stores it, and as mqadmin is told it."""


def lite_topic_findings(topic: str, pieces: Iterable[Evidence]) -> list[Row]:
    """One INFO finding if a store says that the topic is of type LITE."""
    for piece in pieces:
        attributes = piece.values.get("attributes") or {}
        if any(attributes.get(name) == LITE for name in TYPE_ATTRIBUTES):
            return [
                finding(
                    "INGEST_LITE_TOPIC",
                    f"{topic} is of type LITE: clients subscribe lite topics inside it, and which "
                    "of them a client reads is not modelled. Its queues count as those of any "
                    "topic.",
                    "Nothing; read what is said of its queues with that in mind.",
                    topic=topic,
                    evidence={"source": piece.source},
                )
            ]
    return []
