"""Rows of ``diffs`` of changes that dumps alone show: they may have come any time before."""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.case import AuditRun
from rebalance_core.audit.listings import SAME_ROUND_MS
from rebalance_core.model.events import CONSUMER_EVENTS, OBSERVED
from rebalance_core.process.covered_starts import rows_by_name

_GROUP = ("cluster", "consumer_group")
_EVENT = (*_GROUP, "event_ms", "event_type", "source", "detail")
_LOOK = (*_GROUP, "observed_ms")


class UndatedMoves:
    """Begins the windows of changes that dumps alone show where the last look before them was.

    The event of such a change has the time of the dump that shows it. It happened since the list
    of members of the round before, or since the brokers' logs ended; without either, since the
    collection begins.

    Args:
        runs: by cluster, with its coverage.
        tables: ``cluster_events`` and ``observed_members`` of the groups.
    """

    def __init__(self, runs: Mapping[str, AuditRun], tables: Mapping[str, pa.Table]) -> None:
        self._since: dict[tuple[str, ...], dict[int, int]] = {}
        shown = _shown_by_dumps(tables)
        groups = {(row["cluster"], row["consumer_group"]) for row in shown}
        looks = _looks(tables, groups)
        for row in shown:
            group, at_ms = (row["cluster"], row["consumer_group"]), row["event_ms"]
            run = runs.get(row["cluster"])
            lists = looks.get(group, [])
            if run is None or not run.coverage.known or at_ms not in lists:
                continue  # it has the time that the client states
            before = bisect_right(lists, at_ms - SAME_ROUND_MS)
            since_ms = lists[before - 1] if before else run.start_ms
            ends = [run.coverage.ends(broker) for broker in run.coverage.brokers]
            if ends and min(ends) <= at_ms:
                since_ms = max(since_ms, min(ends))
            since_ms -= run.coverage.clock_error_ms
            of_group = self._since.setdefault(group, {})
            of_group[at_ms] = min(since_ms, of_group.get(at_ms, since_ms))

    def __call__(self, diffs: pa.RecordBatch) -> pa.RecordBatch:
        """The rows, with ``earliest_ms`` where their change may have come."""
        if not self._since or not len(diffs):
            return diffs
        names, codes = rows_by_name(diffs, _GROUP)
        change_ms, earliest_ms = diffs["change_ms"].to_numpy(), diffs["earliest_ms"].to_numpy()
        found = earliest_ms.copy()
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(names) + 1))
        for number, name in enumerate(names):
            rows = order[ends[number] : ends[number + 1]]
            for at_ms, since_ms in self._since.get(name, {}).items():
                mine = rows[change_ms[rows] == at_ms]
                found[mine] = np.minimum(found[mine], since_ms)
        columns = {name: diffs[name] for name in diffs.schema.names}
        columns["earliest_ms"] = pa.array(found, diffs.schema.field("earliest_ms").type)
        return pa.RecordBatch.from_arrays([*columns.values()], schema=diffs.schema)


def _shown_by_dumps(tables: Mapping[str, pa.Table]) -> list[dict[str, Any]]:
    """The events of members that have a dump as their source."""
    events = tables["cluster_events"]
    by_dumps = pc.starts_with(pc.field("source").cast(pa.string()), "mqadmin/")
    of_members = pc.field("event_type").cast(pa.string()).isin(CONSUMER_EVENTS)
    found = events.filter(by_dumps & of_members).select(_EVENT).to_pylist()
    return [row for row in found if row["detail"] != OBSERVED]


def _looks(
    tables: Mapping[str, pa.Table], groups: set[tuple[str, str]]
) -> dict[tuple[str, str], list[int]]:
    """When the members of each group were looked at, in order."""
    looks: dict[tuple[str, str], set[int]] = {}
    if groups and "observed_members" in tables:
        rows = tables["observed_members"].select(_LOOK)
        for row in rows.group_by([*_LOOK]).aggregate([]).to_pylist():
            group = row["cluster"], row["consumer_group"]
            if group in groups:
                looks.setdefault(group, set()).add(row["observed_ms"])
    return {group: sorted(times) for group, times in looks.items()}
