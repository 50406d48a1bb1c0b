"""Describes the events of a night in words: those of groups from epochs and logged changes of their
settings, those of brokers from outages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.group_snapshot import AuditRun, GroupUpdate, lasting, listed, plural
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.history.night import NightSpan, ReadColumns
from rebalance_core.model.events import (
    CONSUMER_JOIN,
    CONSUMER_LOST,
    CONSUMER_RESUME,
    CONSUMER_SUSPEND,
    GROUP_EVENTS,
    REQUEST_MODE,
    SUBSCRIBE,
    TOPIC_EVENTS,
    UNSUBSCRIBE,
)
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.times import MINUTE_MS, utc
from rebalance_core.model.verdicts import DUMPS, UNKNOWN
from rebalance_core.report.tonight import GroupName, GroupState, Happening, Tonight

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import EpochsRow, GroupMetricsRow, MembershipsRow

BURST_MS = 5 * MINUTE_MS
"""Changes of a group that are at most this far apart are one event."""
GROUPS_IN_WORDS = 200
"""The maximum number of groups whose changes are described: those with the most losses, then the
most changes.
"""
BURSTS_OF_GROUP = 20
"""The maximum number of events described per group, counting from the last."""
_GROUP = ("cluster", "consumer_group")
_EPOCHS = ("epoch", "from_ms", "to_ms", "causes", "members")
_QUEUES = ("epoch", "topic", "queues")
_MEMBERS = ("client_id", "channel_id", "from_epoch", "to_epoch", "strategy", "version")
_MINE = frozenset({*GROUP_EVENTS, *TOPIC_EVENTS})
"""Causes specific to a group; actions of brokers are reported once for the cluster."""
_SETTINGS = {
    CONSUMER_SUSPEND: "suspended",
    CONSUMER_RESUME: "resumed",
    SUBSCRIBE: "subscriptions",
    UNSUBSCRIBE: "subscriptions",
    REQUEST_MODE: "request mode",
}
_OUTAGE, _OFFLINE, _LOST, _SETTING, _REDEPLOY, _SCALE, _FIRST = range(7)
"""Weights of events, the most severe first."""


def tonight_of(runs: Mapping[str, AuditRun], read: ReadColumns) -> Tonight:
    """Return the events in each cluster's night.

    Args:
        runs: the runs, by cluster.
        read: reads the tables of the audit.
    """
    spans = {name: NightSpan(run.night_ms, run.end_ms) for name, run in runs.items()}
    epochs = _of_night(read("epochs", [*_GROUP, *_EPOCHS]), spans)
    chosen, changed = _chosen(epochs, spans)
    stays: dict[GroupName, list[MembershipsRow]] = _grouped(
        _of_groups(read("memberships", [*_GROUP, *_MEMBERS]), chosen)
    )
    queues: dict[GroupName, list[GroupMetricsRow]] = _grouped(
        _of_groups(read("group_metrics", [*_GROUP, *_QUEUES]), chosen)
    )
    found: list[Happening] = []
    for name, run in runs.items():
        found += _of_brokers(name, run, spans[name])
    of_groups: dict[GroupName, list[EpochsRow]] = _grouped(_of_groups(epochs, chosen))
    for group, rows in of_groups.items():
        life = GroupLife(rows, stays.get(group, []), queues.get(group, []))
        found += life.happenings(group, spans[group[0]])
    updated: dict[GroupName, list[Happening]] = defaultdict(list)
    for one in sorted(_of_settings(runs, spans, read), key=lambda one: one.at_ms):
        updated[one.cluster, one.consumer_group or ""].append(one)
    described = list(dict.fromkeys([*chosen, *updated]))[:GROUPS_IN_WORDS]
    for group in described:
        found += updated.get(group, [])[-BURSTS_OF_GROUP:]
    found.sort(key=lambda one: (one.at_ms, one.cluster, one.consumer_group or "", one.text))
    return Tonight(
        min((max(run.night_ms, run.start_ms) for run in runs.values()), default=0),
        max((run.end_ms for run in runs.values()), default=0),
        tuple(found),
        len(changed | updated.keys()),
        len(described),
    )


def _of_night(epochs: pa.Table, spans: Mapping[str, NightSpan]) -> pa.Table:
    """Return the epochs that overlap the night, without those of RocketMQ's own groups."""
    own = [name for name in epochs["consumer_group"].unique().to_pylist() if is_system_group(name)]
    rows = epochs.filter(pc.invert(pc.is_in(epochs["consumer_group"], pa.array(own, pa.string()))))
    parts = []
    for cluster, span in spans.items():
        part = rows.filter(pc.equal(rows["cluster"], cluster))
        parts.append(part.filter(span.touches(part["from_ms"], part["to_ms"])))
    return pa.concat_tables(parts) if parts else rows.slice(0, 0)


def _chosen(
    epochs: pa.Table, spans: Mapping[str, NightSpan]
) -> tuple[list[GroupName], set[GroupName]]:
    """Return the groups to describe, and all groups that changed."""
    after = [spans[name].after_ms for name in epochs["cluster"].to_pylist()]
    begun = np.asarray(epochs["from_ms"]) > np.array(after, np.int64)
    causes = epochs["causes"].combine_chunks()
    parents = pc.list_parent_indices(causes)
    flat = pc.list_flatten(causes)
    mine, lost = (np.zeros(len(epochs), bool) for _ in range(2))
    mine[np.asarray(parents.filter(pc.is_in(flat, pa.array(sorted(_MINE)))))] = True
    lost[np.asarray(parents.filter(pc.equal(flat, CONSUMER_LOST)))] = True
    rows = epochs.select(_GROUP).append_column("lost", pa.array((lost & begun).astype(np.int64)))
    rows = rows.filter(pa.array(mine & begun))
    counts = rows.group_by(list(_GROUP)).aggregate([("lost", "sum"), ("lost", "count")])
    order = [("lost_sum", "descending"), ("lost_count", "descending")]
    order += [(name, "ascending") for name in _GROUP]
    ordered = counts.sort_by(order)
    pairs = list(zip(*(ordered[name].to_pylist() for name in _GROUP), strict=True))
    return pairs[:GROUPS_IN_WORDS], set(pairs)


def _of_groups(rows: pa.Table, groups: Sequence[GroupName]) -> pa.Table:
    keys = pa.array(["\0".join(name) for name in groups], pa.string())
    key = pc.binary_join_element_wise(*(rows[name] for name in _GROUP), "\0")
    return rows.filter(pc.is_in(key, keys))


OfGroup = TypeVar("OfGroup", "EpochsRow", "GroupMetricsRow", "MembershipsRow")


def _grouped(rows: pa.Table) -> dict[GroupName, list[OfGroup]]:
    found: dict[GroupName, list[OfGroup]] = defaultdict(list)
    read: list[OfGroup] = rows_of_arrow(rows)
    for row in read:
        found[row["cluster"], row["consumer_group"]].append(row)
    return found


Process = tuple[str, str | None, int]
"""Client, channel, epoch."""


class GroupLife:
    """The epochs of a group in a night, and its members.

    Args:
        epochs: rows of the night.
        memberships: all rows of the group.
        metrics: its rows of ``group_metrics``.
    """

    def __init__(
        self,
        epochs: Sequence[EpochsRow],
        memberships: Sequence[MembershipsRow],
        metrics: Iterable[GroupMetricsRow],
    ) -> None:
        self._epochs = sorted(epochs, key=lambda row: row["epoch"])
        self._members = memberships
        self._queues: dict[int, dict[str, int]] = defaultdict(dict)
        for row in metrics:
            if row["topic"] is not None:
                self._queues[row["epoch"]][row["topic"]] = row["queues"]

    def happenings(self, group: GroupName, night: NightSpan) -> Iterator[Happening]:
        """Yield the last `BURSTS_OF_GROUP` events that began in the night."""
        bursts: list[list[EpochsRow]] = []
        for row in self._epochs:
            if row["from_ms"] <= night.after_ms or not _MINE.intersection(row["causes"]):
                continue
            if bursts and _goes_on(bursts[-1], row):
                bursts[-1].append(row)
            else:
                bursts.append([row])
        for burst in bursts[-BURSTS_OF_GROUP:]:
            words = self._words(burst)
            if words is not None:
                yield Happening(*group, burst[0]["from_ms"], *words, burst[-1]["members"])
            if burst[0]["epoch"] > 0:
                yield from self._of_topics(group, burst)

    def _of_topics(self, group: GroupName, burst: Sequence[EpochsRow]) -> Iterator[Happening]:
        """Yield at most one event, about the topics whose numbers of queues changed."""
        rows = [row for row in burst if {*TOPIC_EVENTS}.intersection(row["causes"])]
        numbers: dict[str, tuple[int, int]] = {}
        for row in rows:
            before = self._before(row)
            if before is None:
                continue
            old, new = self._queues[before["epoch"]], self._queues[row["epoch"]]
            for topic in sorted(old.keys() | new.keys()):
                was, now = old.get(topic, 0), new.get(topic, 0)
                if was != now:
                    numbers[topic] = numbers.get(topic, (was, 0))[0], now
        changed = {topic: pair for topic, pair in numbers.items() if pair[0] != pair[1]}
        if changed:
            heads = {_grown(*pair) for pair in changed.values()}
            head = f"Topics {heads.pop() if len(heads) == 1 else 'changed'}"
            named = (f"{t} {was:,} → {now:,}" for t, (was, now) in changed.items())
            text = f"{head}: queues of {listed(named)}"
            yield Happening(*group, rows[0]["from_ms"], text, _SCALE)

    def _words(self, burst: Sequence[EpochsRow]) -> tuple[str, int] | None:
        """Return the description of a burst and its weight, or None if it changed nothing worth
        describing.
        """
        numbers = {row["epoch"] for row in burst}
        causes = {cause for row in burst for cause in row["causes"]}
        last = burst[-1]
        if 0 in numbers:
            return f"First seen: {plural(last['members'], 'member')}", _FIRST
        before = self._before(burst[0])
        joined = sum(epoch in numbers for _, _, epoch in self._starts)
        ends = [epoch for _, _, epoch in self._ends if epoch in numbers]
        lossy = {row["epoch"] for row in burst if CONSUMER_LOST in row["causes"]}
        lost = sum(epoch in lossy for epoch in ends)
        parts = [
            *([f"{joined:,} joined"] if joined else []),
            *([f"{len(ends) - lost:,} left"] if len(ends) > lost else []),
            *([f"{lost:,} lost (killed, or cut off from the brokers)"] if lost else []),
            *dict.fromkeys(words for cause, words in _SETTINGS.items() if cause in causes),
        ]
        was = None if before is None else before["members"]
        head, weight = _head(was, last["members"], joined, len(ends), lost)
        if was is not None and was != last["members"]:
            parts.append(f"{was:,} → {plural(last['members'], 'member')}")
        if before is not None:
            parts += self._changed(before, last)
        if not parts:
            return None
        return f"{head}: {', '.join(parts)}", weight

    def _before(self, epoch: EpochsRow) -> EpochsRow | None:
        place = self._epochs.index(epoch)
        return self._epochs[place - 1] if place else None

    def _changed(self, before: EpochsRow, after: EpochsRow) -> Iterator[str]:
        """Yield the changed settings of the members."""
        old, new = self._live(before["epoch"]), self._live(after["epoch"])
        words = {
            "strategy": tuple({row["strategy"] for row in rows} for rows in (old, new)),
            "version": tuple({row["version"] for row in rows} for rows in (old, new)),
        }
        for name, (was, now) in words.items():
            if was and now and was != now:
                yield f"{name} {', '.join(sorted(was))} → {', '.join(sorted(now))}"

    def _live(self, epoch: int) -> list[MembershipsRow]:
        return [
            row
            for row in self._members
            if row["from_epoch"] <= epoch and (row["to_epoch"] is None or row["to_epoch"] > epoch)
        ]

    @cached_property
    def _starts(self) -> list[Process]:
        """Return the processes that joined; a process whose settings changed did not join."""
        ended = set(self._rows("to_epoch"))
        return [process for process in self._rows("from_epoch") if process not in ended]

    @cached_property
    def _ends(self) -> list[Process]:
        begun = set(self._rows("from_epoch"))
        return [process for process in self._rows("to_epoch") if process not in begun]

    def _rows(self, end: str) -> list[Process]:
        rows = cast("Iterable[Mapping[str, object]]", self._members)
        return [
            cast("Process", (row["client_id"], row["channel_id"], row[end]))
            for row in rows
            if row[end] is not None
        ]


def _goes_on(burst: Sequence[EpochsRow], row: EpochsRow) -> bool:
    """Return whether an epoch belongs to the burst, as may happen when a group is first seen while
    members join.
    """
    if burst[0]["epoch"] == 0 and set(row["causes"]) != {CONSUMER_JOIN}:
        return False
    return row["from_ms"] - burst[-1]["from_ms"] <= BURST_MS


def _head(before: int | None, after: int, joined: int, ended: int, lost: int) -> tuple[str, int]:
    """Return a description of the event in a word or two, and its weight."""
    if not after and ended:
        return "No member is left", _OFFLINE
    if joined and ended and before and 2 * min(joined, ended) >= before:
        return ("Members lost and replaced", _LOST) if lost else ("Redeploy", _REDEPLOY)
    if lost:
        return "Members lost", _LOST
    if joined and not ended:
        return ("Scale-out", _SCALE) if before else ("Came online", _SCALE)
    if ended and not joined:
        return "Scale-in", _SCALE
    return ("Members changed", _SCALE) if joined else ("Settings changed", _SETTING)


def _grown(was: int, now: int) -> str:
    return "scaled out" if now > was else "scaled in"


def _of_settings(
    runs: Mapping[str, AuditRun], spans: Mapping[str, NightSpan], read: ReadColumns
) -> Iterator[Happening]:
    """Yield the changes of the settings of groups; a change at several brokers is one event."""
    if not any(run.updates for run in runs.values()):
        return
    names = read("group_verdicts", _GROUP)
    known = set(zip(*(names[name].to_pylist() for name in _GROUP), strict=True))
    for cluster, run in runs.items():
        alike: dict[tuple[str, str], list[list[GroupUpdate]]] = defaultdict(list)
        for update in run.updates:
            if not spans[cluster].after_ms < update.at_ms <= spans[cluster].end_ms:
                continue
            times = alike[update.consumer_group, update.changes]
            if times and update.at_ms - times[-1][0].at_ms <= BURST_MS:
                times[-1].append(update)
            else:
                times.append([update])
        for (group, changes), times in alike.items():
            if (cluster, group) not in known or is_system_group(group):
                continue
            for updates in times:
                brokers = listed(sorted({update.broker_name for update in updates}))
                text = f"Settings changed at {brokers}: {changes}"
                yield Happening(cluster, group, updates[0].at_ms, text, _SETTING)


def _of_brokers(cluster: str, run: AuditRun, night: NightSpan) -> Iterator[Happening]:
    for broker, outages in sorted(run.outages.items()):
        for outage in outages:
            down_ms, up_ms = outage.down_ms, outage.up_ms
            if up_ms is not None and up_ms <= night.after_ms:
                continue
            at_ms = max(down_ms if down_ms is not None else outage.seen_ms or 0, night.after_ms)
            text = _outage(broker, down_ms, up_ms, at_ms)
            yield Happening(cluster, None, at_ms, text, _OUTAGE)
    for broker, gaps in sorted(run.masters.items()):
        for gap in gaps:
            if gap.up_ms is not None and gap.up_ms <= night.after_ms:
                continue
            lasted = "" if gap.up_ms is None else f" for {lasting(gap.up_ms - gap.down_ms)}"
            text = f"{broker} had no master{lasted}" if lasted else f"{broker} lost its master"
            at_ms = max(gap.down_ms, night.after_ms)
            yield Happening(cluster, None, at_ms, f"{text} while a slave was alive", _OUTAGE)


def _outage(broker: str, down_ms: int | None, up_ms: int | None, at_ms: int) -> str:
    """Return an outage in words, for a line that begins with ``at_ms``."""
    if up_ms is None and down_ms == at_ms:
        return f"{broker} went down and has not come back"
    since = "since an unknown time" if down_ms is None else f"since {utc(down_ms)}"
    if up_ms is None:
        return f"{broker} is down, {since}"
    if down_ms is None:
        return f"{broker} was down until {utc(up_ms)}"
    return f"{broker} was down for {lasting(up_ms - down_ms)}, until {utc(up_ms)}"


_UNKNOWN_STRATEGY = "INGEST_STRATEGY_UNKNOWN"
_ASSUMED = ("INGEST_ASSUMED", _UNKNOWN_STRATEGY)
"""Rules whose findings name groups with a strategy or version that may be assumed."""


def group_states(read: ReadColumns) -> dict[GroupName, GroupState]:
    """Return the state of each group at the end of an audit, without RocketMQ's own groups.

    Strategies and versions come from logs, because with dumps alone they may have to be assumed.

    Args:
        read: reads the audit's tables.
    """
    stays = read("memberships", [*_GROUP, "to_epoch", "strategy", "version"])
    stays = stays.filter(pc.is_null(stays["to_epoch"]))
    words = stays.group_by(list(_GROUP)).aggregate(
        [("strategy", "distinct"), ("version", "distinct")]
    )
    live = {(row["cluster"], row["consumer_group"]): row for row in words.to_pylist()}
    found = read("findings", [*_GROUP, "rule_id", "evidence"])
    found = found.filter(pc.is_in(found["rule_id"], pa.array(_ASSUMED)))
    for row in found.to_pylist():
        fields = {name for name, _ in row["evidence"] or ()}
        if row["rule_id"] == _UNKNOWN_STRATEGY or fields & {"strategy", "client_version"}:
            live.pop((row["cluster"], row["consumer_group"]), None)
    states: dict[GroupName, GroupState] = {}
    columns = [*_GROUP, "verdict", "members", "queues", "basis"]
    for row in read("group_verdicts", columns).to_pylist():
        name = (row["cluster"], row["consumer_group"])
        if is_system_group(name[1]):
            continue
        known = row["verdict"] != UNKNOWN
        if row["basis"] == DUMPS:
            live.pop(name, None)
        of_members = live.get(name, {"strategy_distinct": (), "version_distinct": ()})
        states[name] = GroupState(
            row["members"] if known else None,
            row["queues"] if known else None,
            tuple(sorted(of_members["strategy_distinct"])),
            tuple(sorted(of_members["version_distinct"])),
        )
    return states
