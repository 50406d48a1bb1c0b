"""Widens the windows of moves in periods with a change that only a document shows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.coverage import UNSURE_MS
from rebalance_core.audit.group_snapshot import AuditRun, grouped
from rebalance_core.audit.listings import SAME_ROUND_MS
from rebalance_core.engine.fan_out import of_types, subscribed
from rebalance_core.ingest.collection import identify
from rebalance_core.ingest.fact import file_of
from rebalance_core.kernels.segments import Ints
from rebalance_core.model.events import (
    CONSUMER_EVENTS,
    CONSUMER_JOIN,
    CONSUMER_LEAVE,
    CONSUMER_LOST,
    OBSERVED,
    SUBSCRIBE,
    TOPIC_CONFIG,
)
from rebalance_core.model.timeline import EVER_MS
from rebalance_core.model.times import SECOND_MS
from rebalance_core.process.covered_starts import rows_by_name

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow

Group = tuple[str, str]
Span = tuple[int, int]
Member = tuple[str, ...]

_GROUP = ("cluster", "consumer_group")
_MEMBER = (*_GROUP, "client_id", "channel_id")
_EVENT = (*_MEMBER, "event_ms", "event_type", "source", "detail")
_LOOK = (*_GROUP, "observed_ms", "source")
_CHANGED_UNSEEN = ("INGEST_TOPIC_CHANGE_NOT_LOGGED", "INGEST_REQUEST_MODE_CHANGED")
"""Findings of ingest about a change between `first_ms` and `last_ms` that no log dates."""

EVER_BEFORE_MS = 0
"""The earliest time of a change without an earlier observation and without a broker's log."""


class UndatedMoves:
    """Widens the windows of moves to the period of each change that only a document shows.

    The event of such a change has a single time, but it may have happened at any time between two
    observations: since the member list of the previous round, or since the brokers' logs ended if
    these record every join of the group. Without either, the period begins with the collection or
    at `EVER_BEFORE_MS`. A member left after it joined. If no log records a member's join, but a
    dump lists it or a line reports that it left, it joined before that dump or line.

    During such a period, every move of the group may be part of the change, and an epoch within it
    may never have existed. For a topic, this applies to the moves of its queues and the epochs of
    its groups; for a request mode, to the moves of its queues. An event that a line dates by an
    unreliable clock may have happened at any time within the clock's error.

    Args:
        runs: the audit runs by cluster, with their coverage.
        tables: ``cluster_events``, ``observed_members`` and ``findings`` of the groups.
    """

    def __init__(self, runs: Mapping[str, AuditRun], tables: Mapping[str, pa.Table]) -> None:
        spans: dict[Group, list[Span]] = {}
        shown = _without_a_line(tables)
        groups = {(row["cluster"], row["consumer_group"]) for row in shown}
        list_times, made = _list_times(tables, groups)
        came, gone = _stays(tables, groups)
        incomplete = {
            (row["cluster"], row["consumer_group"]) for row in shown if _should_be_logged(row, runs)
        }
        for row in shown:
            group = (row["cluster"], row["consumer_group"])
            run = runs.get(row["cluster"])
            if run is not None and run.coverage.known:
                member = tuple(row[name] for name in _MEMBER)
                made_ms = made.get(file_of(row["source"]), gone.get((*member, row["source"])))
                before = (ms for ms in came.get(member, ()) if ms < row["event_ms"])
                came_ms = EVER_BEFORE_MS
                if row["event_type"] in (CONSUMER_LEAVE, CONSUMER_LOST):
                    came_ms = max(before, default=EVER_BEFORE_MS)
                lists = list_times.get(group, [])
                logged = group not in incomplete
                open_spans = _open_span(row, run, lists, made_ms, came_ms, logged=logged)
                spans.setdefault(group, []).extend(open_spans)
        self._of_members = {group: of for group, of in spans.items() if of}
        findings = tables.get("findings")
        unseen = pc.field("rule_id").cast(pa.string()).isin(_CHANGED_UNSEEN)
        changed = [] if findings is None else findings.filter(unseen).to_pylist()
        of_groups = grouped(changed, lambda row: (row["cluster"], row["consumer_group"]))
        self._of_modes = {group: changed_unseen(rows) for group, rows in of_groups.items()}
        self._of_topics = _topics_unseen(runs, tables["cluster_events"])
        for (cluster, name), topics, span in _by_inexact_clocks(runs, tables["cluster_events"]):
            if name:
                self._of_members.setdefault((cluster, name), []).append(span)
            of = self._of_topics[cluster]
            of |= {topic: (*of.get(topic, ()), span) for topic in topics}
        unseen_topics = {topic for of in self._of_topics.values() for topic in of}
        self._subscribed = topics_of_groups(tables, unseen_topics)

    def diffs(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of ``diffs`` with windows as wide as the uncertainty of their changes."""
        change_ms = rows["change_ms"].to_numpy()
        earliest_ms, latest_ms = (rows[n].to_numpy().copy() for n in ("earliest_ms", "latest_ms"))
        for mine, (low_ms, high_ms) in self._within(rows, (*_GROUP, "topic"), change_ms):
            earliest_ms[mine] = np.minimum(earliest_ms[mine], low_ms)
            latest_ms[mine] += high_ms - change_ms[mine]
        return _with(rows, earliest_ms=earliest_ms, latest_ms=latest_ms)

    def epochs(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of ``epochs``, with those that may never have existed marked as transient."""
        to_ms = pc.fill_null(rows["to_ms"], EVER_MS).to_numpy()
        transient = rows["transient"].to_numpy(zero_copy_only=False).copy()
        for mine, (_, high_ms) in self._within(rows, _GROUP, rows["from_ms"].to_numpy()):
            transient[mine] |= to_ms[mine] <= high_ms
        return _with(rows, transient=transient)

    def _within(
        self, rows: pa.RecordBatch, columns: tuple[str, ...], times: Ints
    ) -> Iterator[tuple[Ints, Span]]:
        """Yield each uncertain span with the rows whose time lies in it and whose names match.

        Without a topic column, the changes of all topics of the group count, but not changes of
        request modes, which change who reads a queue rather than how queues are allocated.
        """
        known = (self._of_members, self._of_modes, *self._of_topics.values())
        if not any(known) or not len(rows):
            return
        names, codes = rows_by_name(rows, columns)
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(names) + 1))
        for number, (cluster, group, *of_row) in enumerate(names):
            own = order[ends[number] : ends[number + 1]]
            spans = list(self._of_members.get((cluster, group), ()))
            for topic in of_row:
                spans += self._of_modes.get((cluster, group), {}).get(topic, ())
            for topic in of_row or self._subscribed.get((cluster, group), []):
                spans += self._of_topics.get(cluster, {}).get(topic, ())
            for low_ms, high_ms in _merged(spans):
                yield own[(low_ms <= times[own]) & (times[own] <= high_ms)], (low_ms, high_ms)


def _with(rows: pa.RecordBatch, **columns: npt.NDArray[Any]) -> pa.RecordBatch:
    """Return the rows with these columns replaced."""
    of = {name: rows[name] for name in rows.schema.names}
    of |= {name: pa.array(values, rows.schema.field(name).type) for name, values in columns.items()}
    return pa.RecordBatch.from_arrays([*of.values()], schema=rows.schema)


def changed_unseen(findings: Iterable[FindingsRow]) -> dict[str, tuple[Span, ...]]:
    """Return, by topic, the periods of changes that ingest dated by a document.

    An event at the time of the previous observation is not such a change, because something that
    happened then dates it, such as the loss of a topic by the replica that became master. Nor is a
    request mode that a client learns, because the client moves its queues at the time of the event.
    """
    spans: dict[str, tuple[Span, ...]] = {}
    for row in findings:
        topic, last_ms = row["topic"], row["last_ms"]
        if row["rule_id"] not in _CHANGED_UNSEEN or topic is None or last_ms is None:
            continue
        if not dict(row["evidence"]).get("source", "").startswith("clients/"):
            first_ms = last_ms if row["first_ms"] is None else row["first_ms"]
            spans[topic] = (*spans.get(topic, ()), (min(first_ms + 1, last_ms), last_ms))
    return spans


def _should_be_logged(row: Mapping[str, Any], runs: Mapping[str, AuditRun]) -> bool:
    """Return True if a member joined before the brokers' logs end and no log records the join.

    Logs that lack a join may also lack a leave, so they do not prove that every member stayed.
    """
    run = runs.get(row["cluster"])
    if run is None or row["event_type"] != CONSUMER_JOIN or row["detail"] == OBSERVED:
        return False
    ends = [run.coverage.ends(broker) for broker in run.coverage.brokers]
    return bool(ends) and row["source"].startswith("mqadmin/") and row["event_ms"] < min(ends)


def _open_span(
    row: Mapping[str, Any],
    run: AuditRun,
    lists: list[int],
    made_ms: int | None,
    came_ms: int,
    *,
    logged: bool,
) -> Iterator[Span]:
    """Yield the period in which each unlogged event of a member may have happened.

    Args:
        row: the event.
        run: its cluster's run.
        lists: when the members of its group were observed.
        made_ms: when the dump was made, if it lists members; for a line, when the member was gone.
        came_ms: when a member that has left had joined, if known.
        logged: whether the brokers' logs would record the event if it happened before they end.
    """
    at_ms = row["event_ms"]
    logs = [run.coverage.of_broker(broker) for broker in run.coverage.brokers]
    by_dump = row["source"].startswith("mqadmin/")
    by_list = by_dump and "-consumerStatus-" not in row["source"]
    # a slave's list, or an empty one, does not show the members
    dated_by_dump = by_dump and (at_ms in lists or (by_list and made_ms in (None, at_ms)))
    # a member joined between the list that lacks it and the list that has it
    joined = made_ms is not None and row["event_type"] == CONSUMER_JOIN and at_ms < made_ms
    if dated_by_dump and row["detail"] != OBSERVED and not joined:
        before = bisect_right(lists, at_ms - SAME_ROUND_MS)
        ends = [run.coverage.ends(broker) for broker in run.coverage.brokers]
        begun_ms = run.start_ms if any(ends) else EVER_BEFORE_MS
        since_ms = max(came_ms, lists[before - 1] if before else begun_ms)
        if logged and ends and min(ends) <= at_ms:
            since_ms = max(since_ms, min(ends))
        yield max(since_ms - run.coverage.clock_error_ms(since_ms), EVER_BEFORE_MS), at_ms
    elif made_ms is not None and joined:
        torn = any(log.torn for log in run.coverage.brokers.values())
        # every broker logs a join, but only one of them logs the departure
        lacking = all if row["source"].startswith("brokers/") else any
        unlogged = not logs or torn or lacking(log.gap(at_ms, made_ms) for log in logs)
        if (unlogged or row["detail"] != OBSERVED) and "-consumerStatus-" not in row["source"]:
            yield at_ms, made_ms


def _by_inexact_clocks(
    runs: Mapping[str, AuditRun], events: pa.Table
) -> Iterator[tuple[Group, Iterable[str], Span]]:
    """Yield logged events with an unreliable time, with the period in which they may have happened.

    Events of members come with their group; events of topics and brokers come without a group, but
    with the topic or all topics of the broker.
    """
    columns = ("consumer_group", "event_type", "topic", "broker_name", "event_ms", "source")
    for cluster, run in runs.items():
        clocks = {folder: clock for folder, clock in run.coverage.clocks.items() if folder}
        if not clocks:
            continue
        of_cluster = events.filter(pc.field("cluster").cast(pa.string()) == cluster)
        rows = of_cluster.select(columns).to_pylist()
        on_broker: dict[str, set[str]] = {}
        for row in rows:
            if row["event_type"] == TOPIC_CONFIG:
                on_broker.setdefault(row["broker_name"], set()).add(row["topic"])
        for row in rows:
            first, *rest = (row["source"] or "").split("/")
            # the querying host and a lone name server have no folder of their own
            clock = clocks.get("/".join((first, *rest[:1]))) or clocks.get(f"{first}/{first}")
            error_ms = 0 if clock is None else clock.known_at(row["event_ms"], UNSURE_MS)
            if error_ms <= SECOND_MS:
                continue
            group, topics = row["consumer_group"] or "", set[str]()
            if not group:
                topics = (
                    {row["topic"]} if row["topic"] else on_broker.get(row["broker_name"], topics)
                )
            span = max(row["event_ms"] - error_ms, EVER_BEFORE_MS), row["event_ms"] + error_ms
            yield (cluster, group), topics, span


def _topics_unseen(
    runs: Mapping[str, AuditRun], events: pa.Table
) -> dict[str, dict[str, tuple[Span, ...]]]:
    """Return, by cluster and topic, the periods in which a topic may have changed without a log
    entry.

    They are those of `AuditRun.changed_unseen`, which begin at any earlier time where the state
    before the change is older than the logs, and the time before a document that alone shows a
    broker's topic settings, where the broker's log does not cover that time.
    """
    of_topics = {
        name: {
            topic: tuple(
                (EVER_BEFORE_MS if low_ms <= run.members_since_ms + 1 else low_ms, high_ms)
                for low_ms, high_ms in spans
            )
            for topic, spans in run.changed_unseen.items()
        }
        for name, run in runs.items()
    }
    columns = ("cluster", "topic", "broker_name", "source")
    observed = pc.field("detail").cast(pa.string()) == OBSERVED
    set_up = pc.field("event_type").cast(pa.string()) == TOPIC_CONFIG
    for row in events.filter(observed & set_up).select(columns).to_pylist():
        run, file = runs.get(row["cluster"]), identify(file_of(row["source"] or ""))
        if run is None or file is None or file.is_log:
            continue
        shown_ms = run.end_ms if file.written_ms is None else file.written_ms
        if run.coverage.of_broker(row["broker_name"]).gap(run.start_ms, shown_ms) is not None:
            of = of_topics[row["cluster"]]
            of[row["topic"]] = (*of.get(row["topic"], ()), (run.start_ms, shown_ms))
    return of_topics


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, merging adjacent ones."""
    merged: list[Span] = []
    for low_ms, high_ms in sorted(spans):
        if merged and low_ms <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], high_ms)
        else:
            merged.append((low_ms, high_ms))
    return merged


def _without_a_line(tables: Mapping[str, pa.Table]) -> list[dict[str, Any]]:
    """Return the events of members whose source is a dump, or a line that shows the member was
    already gone.
    """
    events = tables["cluster_events"]
    source, kind = (pc.field(name).cast(pa.string()) for name in ("source", "event_type"))
    gone = events.filter(kind.isin((CONSUMER_LEAVE, CONSUMER_LOST)))["source"].cast(pa.string())
    by_dumps = pc.starts_with(source, "mqadmin/")
    later = pc.field("detail").cast(pa.string()) == OBSERVED
    later |= (kind == CONSUMER_JOIN) & source.isin(gone.combine_chunks())
    alone = (by_dumps | later) & kind.isin(CONSUMER_EVENTS) & source.is_valid()
    rows: list[dict[str, Any]] = events.filter(alone).select(_EVENT).to_pylist()
    return rows


def topics_of_groups(tables: Mapping[str, pa.Table], topics: set[str]) -> dict[Group, list[str]]:
    """Return, in order, the topics of this set to which each group subscribes at any time."""
    stated = [of_types(tables["cluster_events"], (CONSUMER_JOIN, SUBSCRIBE))] if topics else []
    stated += [tables["consumer_groups"]] if topics and "consumer_groups" in tables else []
    subscribed_of: dict[Group, set[str]] = {}
    for rows in map(subscribed, stated):
        mine = rows.filter(pc.field("topic").cast(pa.string()).isin([*topics]))
        for row in mine.group_by(mine.column_names).aggregate([]).to_pylist():
            group = row["cluster"], row["consumer_group"]
            subscribed_of.setdefault(group, set()).add(row["topic"])
    return {group: sorted(of_group) for group, of_group in subscribed_of.items()}


def _stays(
    tables: Mapping[str, pa.Table], groups: set[Group]
) -> tuple[dict[Member, list[int]], dict[Member, int]]:
    """Return when each process joined, and when it was gone, by process and source."""
    came: dict[Member, list[int]] = {}
    gone: dict[Member, int] = {}
    of_members = pc.field("event_type").cast(pa.string()).isin(CONSUMER_EVENTS)
    events = tables["cluster_events"].filter(of_members).select(_EVENT) if groups else None
    for row in [] if events is None else events.to_pylist():
        if (row["cluster"], row["consumer_group"]) in groups:
            member = tuple(row[name] for name in _MEMBER)
            if row["event_type"] == CONSUMER_JOIN:
                came.setdefault(member, []).append(row["event_ms"])
            elif row["event_type"] in (CONSUMER_LEAVE, CONSUMER_LOST):
                gone[*member, row["source"]] = row["event_ms"]
    return came, gone


def _list_times(
    tables: Mapping[str, pa.Table], groups: set[Group]
) -> tuple[dict[Group, list[int]], dict[str, int]]:
    """Return when the members of each group were observed, in order, and the same time by file."""
    list_times: dict[Group, set[int]] = {}
    made: dict[str, int] = {}
    if groups and "observed_members" in tables:
        rows = tables["observed_members"].select(_LOOK)
        for row in rows.group_by([*_LOOK]).aggregate([]).to_pylist():
            group = row["cluster"], row["consumer_group"]
            if group in groups:
                list_times.setdefault(group, set()).add(row["observed_ms"])
                made[file_of(row["source"])] = row["observed_ms"]
    return {group: sorted(times) for group, times in list_times.items()}, made
