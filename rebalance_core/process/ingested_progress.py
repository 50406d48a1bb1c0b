"""`queue_progress` of an ingest: as in an audit, but with the holders that the latest dumps
show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.retention import retention_ms
from rebalance_core.contracts import OBSERVED_TABLES, PROGRESS_TABLES
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.engine.fan_out import GROUP, topics_of_groups, with_empty_events_if_missing
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.times import MINUTE_MS
from rebalance_core.process.queue_progress import (
    OF_LITE_TOPIC,
    queue_progress,
    with_expiry,
    with_holders,
)

if TYPE_CHECKING:
    pass

PROGRESS = "queue_progress"
READ_TOPICS = "read_topics"
"""The table of `progress_evidence` with the cluster, consumer_group and topic that each group
reads.
"""

_KINDS = ("QUEUE_PROGRESS", "MESSAGE_RETENTION")


def progress_evidence(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the rows from which `queue_progress` is computed, and `READ_TOPICS`.

    Rows with a topic concern only that topic; rows without a topic concern all.

    Args:
        tables: Some or all of a collection's tables, by name.
    """
    evidence = {
        name: tables[name]
        for name in ("committed_offsets", "queue_offsets", "observed_ownership")
        if name in tables
    }
    evidence[READ_TOPICS] = topics_of_groups(with_empty_events_if_missing(tables))
    if "consumer_groups" in tables:
        groups = tables["consumer_groups"]
        model = pc.fill_null(groups["message_model"], "")
        of_all = groups.filter(pc.equal(model, BROADCASTING))
        evidence["consumer_groups"] = of_all.select([*GROUP, "message_model"])
    if "findings" in tables:
        found = tables["findings"].select([*GROUP, "topic", "rule_id"])
        evidence["findings"] = found.filter(pc.equal(found["rule_id"], OF_LITE_TOPIC))
    if "observed_facts" in tables:
        facts = tables["observed_facts"]
        evidence["observed_facts"] = facts.filter(pc.is_in(facts["kind"], pa.array(_KINDS)))
    return {name: rows for name, rows in evidence.items() if len(rows)}


def ingested_progress(evidence: Mapping[str, pa.Table]) -> pa.Table:
    """Return the rows of `queue_progress`.

    Args:
        evidence: `progress_evidence` of whole collections, or the part that concerns some topics.
    """
    contract = PROGRESS_TABLES[PROGRESS]
    read = evidence.get(READ_TOPICS)
    if read is None:
        return contract.arrow_schema().empty_table()
    topics = read.group_by([*GROUP, "topic"], use_threads=False).aggregate([])
    progress = with_holders(queue_progress(evidence, topics), _held_last(evidence))
    return with_expiry(progress, _retention_ms(evidence)).select(contract.column_names)


def _held_last(evidence: Mapping[str, pa.Table]) -> pa.Table:
    """Return the holders in the latest dumps about each topic, as `with_holders` takes them."""
    held = evidence.get("observed_ownership")
    if held is None:
        held = OBSERVED_TABLES["observed_ownership"].arrow_schema().empty_table()
    topic = [*GROUP, "topic"]
    held = held.join(
        held.group_by(topic, use_threads=False).aggregate([("observed_ms", "max")]), keys=topic
    )
    late = pc.greater_equal(held["observed_ms"], pc.subtract(held["observed_ms_max"], MINUTE_MS))
    held = held.filter(late)
    return held.append_column("to_ms", pa.nulls(len(held), pa.int64()))


def _retention_ms(evidence: Mapping[str, pa.Table]) -> dict[tuple[str, str], int]:
    """Return how long each broker keeps messages, by cluster and broker."""
    if "observed_facts" not in evidence:
        return {}
    facts = evidence["observed_facts"]
    return retention_ms(rows_of_arrow(facts.filter(pc.equal(facts["kind"], "MESSAGE_RETENTION"))))
