"""Input tables of a recording as histories of its groups, read without Spark."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from rebalance_core.engine.sharing_groups import groups_sharing_with
from rebalance_core.ingest.in_process import Ingested, ingest_collection
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.group_replay import replay_group
from rebalance_core.replay.history import CommittedOffset, GroupHistory, QueueOffset
from rebalance_core.replay.topic_shares import StrategyKey
from rebalance_core.strategies import AllocationStrategy, parse_strategy

DATA = Path(__file__).parent / "data"
RECORDINGS = sorted(path.parent.name for path in DATA.glob("*/tables"))

Row = dict[str, Any]
Tables = Any
"""Rows by table."""


def rows(path: Path) -> list[Row]:
    """The rows of one JSON lines file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def strategy_for(key: StrategyKey) -> AllocationStrategy:
    """The strategy of a (text, client version)."""
    return parse_strategy(key[0], version=key[1])


def derived_tables(recording: str) -> Tables:
    """The input tables that come with a recording."""
    folder = DATA / recording / "tables"
    return {path.stem: rows(path) for path in sorted(folder.glob("*.jsonl"))}


@cache
def ingested_recording(recording: str) -> Ingested:
    """What `ingest` makes of the collection of a recording; nobody changes it."""
    return ingest_collection(DATA / recording / "collection")


def histories(tables: Tables) -> Iterator[GroupHistory]:
    """One history a group; each gets every cluster event and every offset, concerned or not."""
    events = tables["cluster_events"]
    settings = {row["consumer_group"]: row for row in tables["consumer_groups"]}
    offsets = tuple(
        QueueOffset(
            _queue(row),
            row["observed_ms"],
            row["min_offset"],
            row["max_offset"],
            row.get("head_cached"),
        )
        for row in tables["queue_offsets"]
    )
    commits = tables["committed_offsets"]
    for group in sorted({e["consumer_group"] for e in events if "consumer_group" in e}):
        own = {
            k: v
            for k, v in settings.get(group, {}).items()
            if k not in ("cluster", "consumer_group")
        }
        yield GroupHistory(
            events[0]["cluster"],
            group,
            GroupSettings(**own),
            tuple(_event(e) for e in events if e.get("consumer_group") in (None, group)),
            offsets,
            tuple(
                CommittedOffset(
                    _queue(row), row.get("client_id"), row["observed_ms"], row["committed_offset"]
                )
                for row in commits
                if row["consumer_group"] == group
            ),
        )


def with_sharing(found: Sequence[GroupHistory]) -> Iterator[GroupHistory]:
    """The histories, each with the groups that share client instances with it."""
    joins = [
        {
            "cluster": one.cluster,
            "client_id": event.client_id,
            "channel_id": event.channel_id,
            "consumer_group": one.consumer_group,
        }
        for one in found
        for event in one.events
        if event.event_type == "CONSUMER_JOIN"
    ]
    sharing_groups = groups_sharing_with(pa.Table.from_pylist(joins)) if joins else {}
    by_name = {(one.cluster, one.consumer_group): one for one in found}
    for name, one in by_name.items():
        yield replace(
            one,
            sharing_groups=tuple(
                by_name[sharing_group] for sharing_group in sharing_groups.get(name, ())
            ),
        )


@cache
def replayed(recording: str) -> Tables:
    """The ledger of a recording's derived tables by the plain replay; nobody changes it."""
    return ledger_of(derived_tables(recording))


def ledger_of(tables: Tables) -> Tables:
    """The ledger of input tables by the plain replay."""
    ledger: Tables = {}
    for history in histories(tables):
        for name, table in replay_group(history, strategy_for).items():
            ledger.setdefault(name, []).extend(table)
    return ledger


def _queue(row: Row) -> MessageQueue:
    return MessageQueue(row["topic"], row["broker_name"], row["queue_id"])


def _event(row: Row) -> Event:
    fields = {k: v for k, v in row.items() if k not in ("cluster", "consumer_group")}
    if "subscriptions" in fields:
        fields["subscriptions"] = tuple(fields["subscriptions"])
    return Event(**fields)
