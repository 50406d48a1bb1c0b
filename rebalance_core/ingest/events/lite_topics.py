"""Topics of type LITE (5.5), inside which clients subscribe to lite topics one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from rebalance_core.ingest.evidence import Evidence, is_lite
from rebalance_core.ingest.rows import Finding, finding

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        TopicCreatedPiece,
        TopicDeletedPiece,
        TopicLoadedPiece,
        TopicUpdatedPiece,
    )

    _Logged: TypeAlias = (
        TopicCreatedPiece | TopicUpdatedPiece | TopicLoadedPiece | TopicDeletedPiece
    )


def lite_topic_findings(topic: str, pieces: Iterable[Evidence]) -> list[Finding]:
    """Return an INFO finding if a store has the topic with type LITE."""
    for piece in pieces:
        if is_lite(piece):
            return [
                finding(
                    "INGEST_LITE_TOPIC",
                    f"{topic} is of type LITE: clients subscribe to lite topics inside it, and "
                    "which of these a client reads is not modelled. Its queues are treated like "
                    "those of any topic, and groups that read it are not compared.",
                    "Nothing. Keep this in mind when you read results about its queues.",
                    topic=topic,
                    evidence={"source": piece.source},
                )
            ]
    return []
