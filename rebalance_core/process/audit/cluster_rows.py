"""What concerns each cluster as a whole, from Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.clusters import BROKER_EVENT_COLUMNS, ClusterRows, cluster_rows
from rebalance_core.audit.completeness import CLUSTER_KINDS
from rebalance_core.contracts.arrow_rows import rows_of_arrow
from rebalance_core.model import events

_DUMP = ("cluster", "broker_name", "command", "last_ms")


def read_cluster_rows(tables: Mapping[str, pa.Table]) -> dict[str, ClusterRows]:
    """What concerns each cluster as a whole, by its name."""
    cluster_events, facts = tables["cluster_events"], tables["observed_facts"]
    spans = cluster_events.group_by("cluster").aggregate([("event_ms", "min"), ("event_ms", "max")])
    of_brokers = pc.is_in(
        cluster_events["event_type"], pa.array([*events.BROKER_EVENTS, *events.MASTER_EVENTS])
    )
    return cluster_rows(
        spans.rename_columns(["cluster", "first_ms", "last_ms"]).to_pylist(),
        rows_of_arrow(facts.filter(pc.is_in(facts["kind"], pa.array(CLUSTER_KINDS)))),
        _newest_dumps(tables).to_pylist(),
        cluster_events.filter(of_brokers).select(BROKER_EVENT_COLUMNS).to_pylist(),
    )


def _newest_dumps(tables: Mapping[str, pa.Table]) -> pa.Table:
    """By command and broker; observed rows of other origin are dumps as well."""
    facts = tables["observed_facts"]
    facts = facts.filter(pc.equal(facts["kind"], "DUMP"))
    command = pc.map_lookup(facts["details"], pa.scalar("command"), "first")
    held, listed = tables["observed_ownership"], tables["observed_members"]
    dumps = [
        pa.table([facts["cluster"], facts["broker_name"], command, facts["last_ms"]], list(_DUMP)),
        _dumps(held, pa.nulls(len(held), pa.string()), "consumerStatus"),
        _dumps(listed, listed["asked_broker"], "consumerConnection"),
    ]
    every = pa.concat_tables(dumps).group_by(list(_DUMP[:3]))
    newest = every.aggregate([("last_ms", "max"), ("last_ms", "min")])
    return newest.rename_columns([*_DUMP[:3], "last_ms", "first_ms"])


def _dumps(observed: pa.Table, broker: pa.Array | pa.ChunkedArray, command: str) -> pa.Table:
    commands = pa.array([command] * len(observed), pa.string())
    columns = [observed["cluster"], broker, commands, observed["observed_ms"]]
    return pa.table(columns, list(_DUMP))
