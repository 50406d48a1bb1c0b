"""Settings, other than queue numbers, that differ between the brokers of a topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rebalance_core.ingest.evidence import Evidence, is_on_topic
from rebalance_core.ingest.rows import Finding, finding
from rebalance_core.model.queue import is_retry_topic, is_system_topic
from rebalance_core.model.verdicts import WARNING
from rebalance_core.protocol.routes import PERM_READ

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import TopicConfigPiece, TopicConfigValues


def differing_settings(topic: str, pieces: Iterable[Evidence]) -> Iterator[Finding]:
    """Yield a finding for each setting that differs between the brokers' newest stores.

    Args:
        topic: the topic; RocketMQ's own and retry topics are left out.
        pieces: evidence on it under brokers' names, in chronological order.
    """
    if is_retry_topic(topic) or is_system_topic(topic):
        return
    newest: dict[str, TopicConfigPiece] = {}
    for piece in pieces:
        if is_on_topic(piece) and piece.kind == "topic_config":
            newest[piece.place] = piece
        elif piece.kind in ("topic_deleted", "topic_updated"):  # the store is older
            newest.pop(piece.place, None)
    of_brokers = {broker: _settings(piece.values) for broker, piece in sorted(newest.items())}
    for name in sorted({name for settings in of_brokers.values() for name in settings}):
        values = {broker: settings.get(name, "unset") for broker, settings in of_brokers.items()}
        if len(set(values.values())) < 2:
            continue
        shown = ", ".join(f"{value} at {broker}" for broker, value in values.items())
        yield finding(
            "INGEST_TOPIC_SETTINGS_DIFFER",
            f"Brokers have {topic} with different settings: {name} is {shown}. What happens to a "
            "message depends on the queue that it is sent to.",
            "Configure the topic identically on all brokers (updateTopic -c <cluster> instead of "
            "-b <address>).",
            WARNING,
            topic=topic,
            first_ms=max(piece.at_ms or 0 for piece in newest.values()),
            evidence={"setting": name, "values": shown},
        )


def _settings(values: TopicConfigValues) -> dict[str, str]:
    """Return what matters: whether consumers may read it, whether it is ordered, and its
    attributes.
    """
    attributes = {name.removeprefix("+"): text for name, text in values["attributes"].items()}
    readable = "true" if values["perm"] & PERM_READ else "false"
    return {"order": str(values["order"]).lower(), "readable": readable, **attributes}
