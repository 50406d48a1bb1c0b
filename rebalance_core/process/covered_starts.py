"""Removes the bounds of pull and pop starts that the collected files do not support."""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.coverage import Process
from rebalance_core.audit.evidence import OWNERS_UNSURE
from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.model.events import BROKER_DOWN
from rebalance_core.model.timeline import EVER_MS, Timeline
from rebalance_core.model.times import SECOND_MS
from rebalance_core.model.verdicts import FAILED, NOT_COVERED, UNKNOWN

_BOUNDS = ("start_offset_low", "start_offset_high")
_GROUP = ("cluster", "consumer_group")
_FOUND = (*_GROUP, "rule_id")
_NEVER_MS = -1


class CoveredStarts:
    """Removes the bounds of starts before which an uncovered change may have happened.

    Where an owner starts depends on everything that happened to the queue: who held it, whether it
    was deleted, which broker answered. A single missing event changes the bounds.

    Args:
        runs: the audit runs by cluster, with their coverage.
        tables: ``findings`` of ingest about the groups of the rows, because groups with unknown
            owners have no bounds; ``committed_offsets``, because commits by clients with unknown
            clocks have no time; and ``cluster_events``, because a name server with a wrong clock
            does not show when brokers left and returned.
    """

    def __init__(self, runs: Mapping[str, AuditRun], tables: Mapping[str, pa.Table]) -> None:
        self._runs = {name: run for name, run in runs.items() if run.coverage.known}
        rows = tables["findings"].select(_FOUND).to_pylist() if "findings" in tables else []
        self._unsure = {
            (row["cluster"], row["consumer_group"])
            for row in rows
            if row["rule_id"] in OWNERS_UNSURE
        }
        late = {
            name
            for name, run in self._runs.items()
            if run.coverage.clock_error_ms(-EVER_MS, EVER_MS) > SECOND_MS
        }
        if late and "cluster_events" in tables:
            down = pc.field("event_type").cast(pa.string()) == BROKER_DOWN
            late &= set(tables["cluster_events"].filter(down)["cluster"].to_pylist())
        self._undated = late
        self._committing: set[tuple[str, str]] = set()
        unclocked = any(run.coverage.client_clock_unknown for run in self._runs.values())
        if unclocked and "committed_offsets" in tables:
            of_clients = pc.is_valid(pc.field("client_id"))
            commits = tables["committed_offsets"].filter(of_clients).group_by([*_GROUP])
            self._committing = {tuple(row.values()) for row in commits.aggregate([]).to_pylist()}

    def __call__(self, starts: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows, with those that are not covered marked UNKNOWN, with the reason."""
        if not self._runs or not len(starts):
            return starts
        names, codes = rows_by_name(starts, (*_GROUP, "broker_name"))
        reason = np.full(len(codes), "", object)
        limits: dict[tuple[str, ...], tuple[int, str]] = {}
        for cluster, group, broker in names:
            # a change on one broker moves queues of others
            if cluster in self._runs:
                of_broker = self._covered_until(cluster, group, broker)
                limits[cluster, group] = min(of_broker, limits.get((cluster, group), of_broker))
        of_names = [limits.get(name[:2], (EVER_MS, "")) for name in names]
        until = np.array([until_ms for until_ms, _ in of_names])
        why = np.array([reason for _, reason in of_names], object)
        unsure = starts["latest_ms"].to_numpy() > until[codes]
        reason[unsure] = why[codes[unsure]]
        lost = ~unsure & self._uncommitted_by_loss(starts, names, codes)
        reason[lost] = NOT_COVERED
        unsure |= lost
        if not unsure.any():
            return starts
        return _without_bounds(starts, unsure, reason)

    def _uncommitted_by_loss(
        self, starts: pa.RecordBatch, names: list[tuple[str, ...]], codes: Ints
    ) -> Bools:
        """Mark starts at times when a broker had lost its offsets and no copy shows the commits."""
        at_ms, uncommitted = starts["earliest_ms"].to_numpy(), np.zeros(len(codes), np.bool_)
        of_brokers: dict[tuple[str, str], list[int]] = {}
        for number, (cluster, _, broker) in enumerate(names):
            of_brokers.setdefault((cluster, broker), []).append(number)
        for (cluster, broker), numbers in of_brokers.items():
            run = self._runs.get(cluster)
            lost = () if run is None else run.coverage.offsets_lost.get(broker, ())
            mine = np.isin(codes, numbers) if lost else uncommitted
            for lost_ms, again_ms in lost:
                uncommitted |= mine & (lost_ms <= at_ms) & (at_ms < again_ms)
        uncommitted &= starts["stored_offset"].is_null().to_numpy(zero_copy_only=False)
        return uncommitted

    def _covered_until(self, cluster: str, group: str, broker: str) -> tuple[int, str]:
        """Return the time up to which starts of a group's queues on a broker are certain, and why
        it ends there.
        """
        if (cluster, group) in self._unsure:
            return _NEVER_MS, NOT_COVERED
        run = self._runs[cluster]
        timeless = run.coverage.client_clock_unknown and (cluster, group) in self._committing
        if timeless or cluster in self._undated:
            return _NEVER_MS, NOT_COVERED
        timelines = [run.coverage.of_broker(broker), *run.stops.values()]
        timelines += run.coverage.clocks_of([broker])
        if broker in run.slaves:
            timelines.append(run.coverage.routes)
        return min(map(_known_until, timelines))


def _known_until(timeline: Timeline[Process]) -> tuple[int, str]:
    """Return when the first gap begins, and its reason."""
    gaps = ((gap.from_ms, why.reason) for gap, why in timeline.gaps())
    return next(gaps, (EVER_MS, ""))


def rows_by_name(
    rows: pa.RecordBatch, columns: Iterable[str]
) -> tuple[list[tuple[str, ...]], Ints]:
    """Return the distinct values in these columns, and the index of each row's value."""
    code = np.zeros(len(rows), np.int64)
    words = []
    for name in columns:
        column = rows[name]
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        words.append(encoded.dictionary)
        code = code * max(1, len(encoded.dictionary)) + encoded.indices.to_numpy()
    used, codes = np.unique(code, return_inverse=True)
    names: list[tuple[str, ...]] = []
    for number in used.tolist():
        values: list[str] = []
        for dictionary in reversed(words):
            number, place = divmod(number, len(dictionary))
            values.append(dictionary[place].as_py())
        names.append(tuple(reversed(values)))
    return names, codes


def _without_bounds(
    starts: pa.RecordBatch, unsure: Bools, reason: npt.NDArray[np.object_]
) -> pa.RecordBatch:
    """Mark the rows as UNKNOWN, keeping their estimates."""
    columns = {name: starts[name] for name in starts.schema.names}
    mask = pa.array(unsure)
    for name in _BOUNDS:
        columns[name] = pc.if_else(mask, pa.scalar(None, pa.int64()), columns[name])
    failed = pc.equal(columns["status"].cast(pa.string()), FAILED)
    mask = pc.and_not(mask, failed)
    for name, words in (("status", UNKNOWN), ("reason", pa.array(reason, pa.string()))):
        text = pc.if_else(mask, words, columns[name].cast(pa.string()))
        columns[name] = text.cast(starts.schema.field(name).type)
    return pa.RecordBatch.from_arrays([*columns.values()], schema=starts.schema)
