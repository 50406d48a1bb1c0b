"""Derives a recorded load from metrics: arrivals, capacities, and numbers of members.

Names and labels come from BrokerMetricsConstant (5.1 on), RocketMQ's own exporter for 4.x
(RMQMetricsCollector) and kube-state-metrics. A broker names itself in ``node_id``. Queues have no
label, so the skew across brokers is preserved but not the skew across a broker's queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rebalance_core.kernels.segments import Bools
from rebalance_core.model.errors import InputRefused
from rebalance_core.model.queue import is_retry_topic, is_system_topic
from rebalance_core.model.times import MINUTE_MS, SECOND_MS, utc
from rebalance_core.planning.autoscale.manifest import name_of
from rebalance_core.planning.autoscale.range_answer import Series

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ArrivalsBegun, CapacityBegun, RecordedScalingRow

COME = ("rocketmq_messages_in_total", "rocketmq_producer_offset")
LAG = ("rocketmq_consumer_lag_messages", "rocketmq_group_diff")
DELIVERED = "rocketmq_messages_out_total"
REPLICAS = "kube_deployment_spec_replicas"
WANTED = frozenset((*COME, *LAG, DELIVERED, REPLICAS))
"""The metrics that are read; the second of each pair is the 4.x exporter's."""
_BROKER = {COME[0]: "node_id", COME[1]: "broker", LAG[0]: "node_id", DELIVERED: "node_id"}
_GROUP = {LAG[0]: "consumer_group", LAG[1]: "group", DELIVERED: "consumer_group"}
_MEMBERS = "countOfOnlineConsumers"
"""A label of the exporter's ``rocketmq_group_diff``: the number of connected members."""
_SAME_BROKER = {"message_type", "is_system", "is_retry", "msgModel", _MEMBERS}
"""Labels that split a broker's counts. Any other label except topic, broker and group (such as
``instance`` or ``pod``) distinguishes a broker's processes.
"""
REPLICAS_STEADY_MS = 2 * MINUTE_MS
"""How long after a change of replicas the group is considered steady: pods have started, and every
member has rebalanced by its timer.
"""
LOOKBACK_MS = 5 * MINUTE_MS
"""``--query.lookback-delta`` of Prometheus."""
FEW_MEASURED = 10
"""Minimum number of intervals in which the group falls behind that are needed to estimate a
distribution.
"""
UNLIKELY = 0.1
"""The allowed share of intervals with a longer, or a shorter, service time."""

Of = tuple[str | None, str]
"""A cluster (None if the series do not name it), and a group or topic in it."""
At = tuple[int, int]
"""The start and end of an interval, epoch ms."""
Counted = Mapping[At, float]
"""The sum of counters in messages per second, by interval, if all are known."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A period in which the increase of a counter is unknown.

    Attributes:
        place: files and series.
        from_ms: begin.
        to_ms: end.
        why: what the samples show.
    """

    place: str
    from_ms: int
    to_ms: int
    why: str

    def __str__(self) -> str:
        return f"{self.place} {utc(self.from_ms)} to {utc(self.to_ms)}: {self.why}"


@dataclass(eq=False)
class RecordedLoad:
    """The rows for ``arrivals``, ``capacity`` and ``recorded_scaling``.

    Attributes:
        arrivals: the arrivals by topic, broker and time.
        capacity: the capacity of groups that at times could not keep up.
        scaling: scaling steps by group and time.
        unknown: periods without a rate, in order of the series.
        unmeasured: why groups have no row of ``capacity``.
    """

    arrivals: list[ArrivalsBegun] = field(default_factory=list)
    capacity: list[CapacityBegun] = field(default_factory=list)
    scaling: list[RecordedScalingRow] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)
    unmeasured: dict[Of, str] = field(default_factory=dict)


def load_of_metrics(
    series: Sequence[Series],
    *,
    cluster: str | None = None,
    deployments: Mapping[str, str] | None = None,
    threads: int,
) -> RecordedLoad:
    """Return the load that the series show.

    A rate is known between two consecutive samples, one step apart, of all counters for a topic at
    a broker, provided that no counter decreases. Retry topics and system topics are left out.

    Args:
        series: the series of the metrics in `WANTED`.
        cluster: the cluster of series that do not name theirs.
        deployments: group -> ``NAME`` or ``NAMESPACE/NAME`` of its Deployment; by default, the
            Deployment with the group's name (`manifest.name_of`).
        threads: the threads of a member.

    Raises:
        InputRefused: a counter is negative or a difference (``metricsInDelta``), replicas are not a
            whole number, two series count the same messages, or a Deployment is not found.
    """
    named = [_Named.of(each, cluster) for each in series]
    used = [each for each in named if each.is_used]
    load = RecordedLoad()
    come = _come(used, load)
    lags = _lags(used)
    delivered = {
        of: _added(parts, load.unknown)
        for of, parts in _by(used, DELIVERED, lambda n: (n.cluster, n.group)).items()
    }
    replicas = _replicas(used, deployments or {}, [*lags, *delivered])
    for of in sorted({*lags, *delivered, *replicas}, key=str):
        lag, pods = lags.get(of), replicas.get(of)
        moments = {} if lag is None else lag.at
        read = delivered.get(of)
        rates = {} if read is None else {end: rate for (_, end), rate in read.items()}
        pods = pods or {}
        for at_ms in sorted({*moments, *rates, *pods}):
            load.scaling.append(
                {
                    "cluster": of[0],
                    "consumer_group": of[1],
                    "at_ms": at_ms,
                    "replicas": pods.get(at_ms),
                    "lag": moments.get(at_ms),
                    "delivered_per_second": rates.get(at_ms),
                }
            )
        row = _capacity(of, lag, pods, come, threads)
        if isinstance(row, str):
            load.unmeasured[of] = row
        else:
            load.capacity.append(row)
    return load


@dataclass(frozen=True, eq=False)
class _Named:
    """A series with the names in its labels."""

    series: Series
    cluster: str | None
    topic: str
    broker: str | None
    group: str

    @classmethod
    def of(cls, series: Series, cluster: str | None) -> _Named:
        labels, name = series.labels, series.name
        return cls(
            series,
            labels.get("cluster") or cluster,
            labels.get("topic", ""),
            labels.get(_BROKER.get(name, "")) or None,
            labels.get(_GROUP.get(name, ""), ""),
        )

    @property
    def is_used(self) -> bool:
        """Whether it counts messages that a group's members consume."""
        if self.series.name == REPLICAS:
            return True
        if self.series.labels.get("is_retry") == "true" or is_retry_topic(self.topic):
            return False
        system = self.series.labels.get("is_system") == "true" or is_system_topic(self.topic)
        if not system:
            self._check()
        return not system

    def _check(self) -> None:
        series = self.series
        needs = ["topic", *([_GROUP[series.name]] if series.name in _GROUP else [])]
        missing = [label for label in needs if not series.labels.get(label)]
        if missing:
            raise InputRefused(f"{series.place} lacks the label {missing[0]}")
        if series.labels.get("aggregation") == "delta":
            raise InputRefused(
                f"{series.place} counts from its last value (metricsInDelta): expected a counter "
                "that only increases"
            )
        if series.name in LAG:
            return
        for at in np.flatnonzero(series.value < 0)[:1]:
            raise InputRefused(
                f"{series.place} is {series.value[at]:.10g} at {utc(int(series.at_ms[at]))}; a "
                "counter is 0 or more"
            )

    @property
    def process(self) -> frozenset[tuple[str, str]]:
        """The labels of the process that exports it."""
        mine = {"cluster", "topic", _BROKER.get(self.series.name), _GROUP.get(self.series.name)}
        return frozenset(
            (label, value)
            for label, value in self.series.labels.items()
            if label not in mine and label not in _SAME_BROKER
        )


def _by(named: Iterable[_Named], name: str, key: Any) -> dict[Any, list[_Named]]:
    """Return the series of a metric, grouped by a key."""
    by_key: dict[Any, list[_Named]] = {}
    for each in named:
        if each.series.name == name:
            by_key.setdefault(key(each), []).append(each)
    return by_key


def _come(named: Sequence[_Named], load: RecordedLoad) -> dict[Of, list[Counted]]:
    """Add the rows of ``arrivals``; return the arrivals in each topic, by broker."""
    come: dict[Of, list[Counted]] = {}
    taken = set[Of]()
    for name in COME:
        by_topic = _by(named, name, lambda n: (n.cluster, n.topic, n.broker))
        of_metric = set[Of]()
        for (cluster, topic, broker), parts in sorted(by_topic.items(), key=str):
            if (cluster, topic) in taken:
                continue  # both exporters count the same messages
            of_metric.add((cluster, topic))
            counted = _added(parts, load.unknown)
            come.setdefault((cluster, topic), []).append(counted)
            load.arrivals += [
                {
                    "cluster": cluster,
                    "from_ms": from_ms,
                    "to_ms": to_ms,
                    "topic": topic,
                    "broker_name": broker,
                    "messages_per_second": rate,
                }
                for (from_ms, to_ms), rate in _joined(counted)
            ]
        taken |= of_metric
    return come


def _joined(rates: Mapping[At, float]) -> Iterator[tuple[At, float]]:
    """Yield intervals in chronological order, merging neighbours with equal rates."""
    last: tuple[At, float] | None = None
    for (from_ms, to_ms), rate in sorted(rates.items()):
        if last is not None and last[0][1] == from_ms and last[1] == rate:
            last = (last[0][0], to_ms), rate
            continue
        if last is not None:
            yield last
        last = (from_ms, to_ms), rate
    if last is not None:
        yield last


def _added(parts: Sequence[_Named], unknown: list[Unknown]) -> Counted:
    """Return the sum of counters, adding the periods in which it is unknown to ``unknown``.

    A broker's processes run in succession or overlap (when the master changes); where they overlap,
    their sums are added. Within a process, every counter must be known. Exporters show the broker's
    own offset, so any one of several will do.
    """
    by_process: dict[frozenset[tuple[str, str]], list[Series]] = {}
    for each in parts:
        by_process.setdefault(each.process, []).append(each.series)
    exported = parts[0].series.name == COME[1]
    if not exported:
        _refuse_doubles(by_process)
    begins = min(int(each.series.at_ms[0]) for each in parts)
    ends = max(int(each.series.at_ms[-1]) for each in parts)
    total: dict[At, float] = {}
    spoilt = set[At]()
    doubts: list[Unknown] = []
    for of_process in by_process.values():
        known, gaps = _of_process(of_process, doubts)
        for at, rate in known.items():
            total[at] = rate if exported else total.get(at, 0.0) + rate
        spoilt |= gaps
    if exported:
        doubts = [each for each in doubts if not _known_in(total, each.from_ms, each.to_ms)]
        spoilt = {(each.from_ms, each.to_ms) for each in doubts}
    if len(by_process) > 1:
        for from_ms, to_ms in spoilt:
            for at in [at for at in total if at[0] < to_ms and at[1] > from_ms]:
                del total[at]
        _between(total, spoilt, (begins, ends), parts[0].series.place, doubts)
    if not total and not doubts:
        doubts.append(Unknown(parts[0].series.place, begins, ends, "it has one sample"))
    unknown += doubts
    return total


def _known_in(total: Counted, from_ms: int, to_ms: int) -> bool:
    """Return True if the rates cover the period without a gap."""
    inside = sorted(at for at in total if at[0] >= from_ms and at[1] <= to_ms)
    edges = [from_ms, *(end for _, end in inside)]
    return edges[-1] == to_ms and [begin for begin, _ in inside] == edges[:-1]


def _of_process(
    counters: Sequence[Series], unknown: list[Unknown]
) -> tuple[dict[At, float], set[At]]:
    """Return the known rates, and the unknown intervals in between."""
    begins = min(int(each.at_ms[0]) for each in counters)
    ends = max(int(each.at_ms[-1]) for each in counters)
    known: dict[At, float] = {}
    seen: dict[At, int] = {}
    gaps = set[At]()
    for each in counters:
        since, until = int(each.at_ms[0]), int(each.at_ms[-1])
        for from_ms, to_ms in ((begins, since), (until, ends)):
            if from_ms < to_ms:
                gaps.add((from_ms, to_ms))
                why = "it has no sample, although other metrics of the process do"
                unknown.append(Unknown(each.place, from_ms, to_ms, why))
        more = np.diff(each.value)
        apart, back = _with_repeats(each), more < 0
        for at in np.flatnonzero(back).tolist():
            interval = int(each.at_ms[at]), int(each.at_ms[at + 1])
            gaps.add(interval)
            why = f"it went back from {each.value[at]:.10g} to {each.value[at + 1]:.10g}"
            unknown.append(Unknown(each.place, *interval, why))
        for first, last in _stretches(apart & ~back):
            interval = int(each.at_ms[first]), int(each.at_ms[last + 1])
            gaps.add(interval)
            step_s = int(each.step_ms[first : last + 2].max()) / SECOND_MS
            why = f"samples are missing, with steps of {step_s:g} s"
            unknown.append(Unknown(each.place, *interval, why))
        good = np.flatnonzero(~(apart | back))
        rates = more[good] * SECOND_MS / np.diff(each.at_ms)[good]
        begin, end = each.at_ms[good].tolist(), each.at_ms[good + 1].tolist()
        for key, rate in zip(zip(begin, end, strict=True), rates.tolist(), strict=True):
            known[key] = known.get(key, 0.0) + rate
            seen[key] = seen.get(key, 0) + 1
    return {at: rate for at, rate in known.items() if seen[at] == len(counters)}, gaps


def _with_repeats(series: Series) -> Bools:
    """Return (samples - 1,) whether samples are missing, or the sample before such a gap is
    repeated.

    Prometheus repeats the last sample for `LOOKBACK_MS` unless it knows that the target is gone,
    which it cannot know if it was itself down.
    """
    missing = series.apart
    for gap in np.flatnonzero(missing).tolist():
        at = gap
        while at > 0 and series.value[at - 1] == series.value[at]:
            if series.at_ms[gap] - series.at_ms[at - 1] > LOOKBACK_MS:
                break
            at -= 1
            missing[at] = True
    return missing


def _stretches(where: Bools) -> list[tuple[int, int]]:
    """Return the first and last index of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], where, [False]]).astype(np.int8)))
    return [(first, last - 1) for first, last in edges.reshape(-1, 2).tolist()]


def _between(
    total: Mapping[At, float], spoilt: set[At], span: At, place: str, unknown: list[Unknown]
) -> None:
    """Add the periods between consecutive processes."""
    at_ms, why = span[0], "no process of the broker has two samples"
    for begin, end in [*sorted({*total, *spoilt}), (span[1], span[1])]:
        if begin > at_ms:
            unknown.append(Unknown(place, at_ms, begin, why))
        at_ms = max(at_ms, end)


def _refuse_doubles(by_process: Mapping[frozenset[tuple[str, str]], Sequence[Series]]) -> None:
    """Raise `InputRefused` if two scrapes have the same counter.

    Each scrape reads it at its own times, so every value lies between neighbouring values of the
    other, while the counter of a new process begins at 0.
    """
    for one, other in combinations(by_process.values(), 2):
        for first in one:
            for second in other:
                _, mine, its = np.intersect1d(first.at_ms, second.at_ms, return_indices=True)
                a, b = first.value[mine], second.value[its]
                same = bool((a[:-1] <= b[1:]).all() and (b[:-1] <= a[1:]).all())
                if same and len(a) > 1 and np.ptp(a) > 0 and np.ptp(b) > 0:
                    raise InputRefused(
                        f"{first.place} and {second.place} count the same messages; query one"
                    )


@dataclass(frozen=True, eq=False)
class _Lag:
    """The lag of a group.

    Attributes:
        at: the lag by time, if known for all topics and brokers.
        topics: the group's topics.
        members: the number of members reported by an exporter, by time.
    """

    at: Mapping[int, float]
    topics: frozenset[str]
    members: Mapping[int, int]


def _lags(named: Sequence[_Named]) -> dict[Of, _Lag]:
    lags: dict[Of, _Lag] = {}
    for name in LAG:
        for of, parts in _by(named, name, lambda n: (n.cluster, n.group)).items():
            lags.setdefault(of, _lag(parts))
    return lags


def _lag(parts: Sequence[_Named]) -> _Lag:
    """Return the sum over topics and brokers, taking the largest lag of a broker's replicas."""
    by_place: dict[tuple[str, str | None], dict[int, float]] = {}
    members: dict[int, int] = {}
    for each in parts:
        of_place = by_place.setdefault((each.topic, each.broker), {})
        count = each.series.labels.get(_MEMBERS, "")
        for at_ms, value in zip(
            each.series.at_ms.tolist(), each.series.value.tolist(), strict=True
        ):
            of_place[at_ms] = max(value, of_place.get(at_ms, value))
            if count.isdecimal():
                members[at_ms] = max(int(count), members.get(at_ms, 0))
    every = set[int].intersection(*(set(of_place) for of_place in by_place.values()))
    at = {
        at_ms: sum(of_place[at_ms] for of_place in by_place.values())
        for at_ms in sorted(every)
        if all(of_place[at_ms] >= 0 for of_place in by_place.values())
    }
    return _Lag(at, frozenset(each.topic for each in parts), members)


def _replicas(
    named: Sequence[_Named], deployments: Mapping[str, str], groups: Iterable[Of]
) -> dict[Of, dict[int, int]]:
    """Return the replicas by group and time."""
    by_name: dict[tuple[str, str], list[Series]] = {}
    for each in named:
        if each.series.name == REPLICAS:
            labels = each.series.labels
            key = labels.get("namespace", ""), labels.get("deployment", "")
            by_name.setdefault(key, []).append(each.series)
    wanted = {of: name_of(of[1]) for of in groups}
    for group, deployment in deployments.items():
        of_group = [of for of in wanted if of[1] == group] or [(None, group)]
        wanted |= dict.fromkeys(of_group, deployment)
    made = {}
    for of, deployment in wanted.items():
        namespace, _, name = deployment.rpartition("/")
        found = [key for key in by_name if key[1] == name and namespace in ("", key[0])]
        if of[1] in deployments and len(found) != 1:
            have = ", ".join(sorted("/".join(key).lstrip("/") for key in by_name)) or "none"
            raise InputRefused(
                f"--deployment {of[1]}={deployment}: {len(found)} deployments of {REPLICAS} fit; "
                f"the answers have {have}"
            )
        if len(found) == 1:
            made[of] = _whole(by_name[found[0]])
    return made


def _whole(series: Iterable[Series]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for each in series:
        for at in np.flatnonzero((each.value < 0) | (each.value % 1 != 0))[:1]:
            raise InputRefused(
                f"{each.place} is {each.value[at]:.10g} at {utc(int(each.at_ms[at]))}; expected a "
                "whole number from 0 up"
            )
        counts |= dict(zip(each.at_ms.tolist(), map(int, each.value.tolist()), strict=True))
    return counts


def _capacity(
    of: Of,
    lag: _Lag | None,
    pods: Mapping[int, int],
    come: Mapping[Of, list[Counted]],
    threads: int,
) -> CapacityBegun | str:
    """Return the row of ``capacity``, or the reason why there is none.

    A group whose members all have waiting messages reads at its capacity: arrivals minus the growth
    of the lag. Queues are seldom allocated evenly, so a member's capacity is at least the mean.
    """
    if lag is None:
        return f"{' or '.join(LAG)} has no series of it"
    pods = pods or lag.members
    if not pods:
        return f"its number of members is unknown: add {REPLICAS}, and --deployment GROUP=NAME"
    brokers = [
        counted
        for topic in lag.topics
        for (cluster, name), parts in come.items()
        if name == topic and of[0] in (None, cluster)
        for counted in parts
    ]
    if not brokers:
        return f"the rates of {', '.join(sorted(lag.topics))} are unknown"
    settled = _settled(pods)
    each_s = list[float]()
    moments = sorted(lag.at)
    for begin, end in pairwise(moments):
        rates = [counted.get((begin, end)) for counted in brokers]
        members = pods.get(end, 0)
        enough = members * threads
        waits = lag.at[begin] > enough < lag.at[end]
        if None in rates or not members or not waits or begin not in settled or end not in settled:
            continue
        grows = (lag.at[end] - lag.at[begin]) * SECOND_MS / (end - begin)
        read = sum(rate for rate in rates if rate is not None) - grows
        if read > 0:
            each_s.append(read / members)
    if len(each_s) < FEW_MEASURED:
        return (
            f"it kept up in all but {len(each_s)} known steps, and {FEW_MEASURED} are needed: its "
            "limit is not visible"
        )
    service = threads * SECOND_MS / np.array(each_s)
    low, likely, high = np.quantile(service, (UNLIKELY, 0.5, 1 - UNLIKELY)).tolist()
    return {
        "cluster": of[0],
        "consumer_group": of[1],
        "service_ms": likely,
        "threads": threads,
        "service_ms_low": low,
        "service_ms_high": high,
    }


def _settled(pods: Mapping[int, int]) -> set[int]:
    """Return the times at which the number of replicas has not changed for `REPLICAS_STEADY_MS`."""
    settled, since, last = set[int](), None, None
    for at_ms, count in sorted(pods.items()):
        if count != last or since is None:
            since, last = at_ms, count
        if at_ms - since >= REPLICAS_STEADY_MS:
            settled.add(at_ms)
    return settled


def span_of(load: RecordedLoad) -> At | None:
    """Return when the first rate begins and the last one ends, or None without rates."""
    if not load.arrivals:
        return None
    return min(r["from_ms"] for r in load.arrivals), max(r["to_ms"] for r in load.arrivals)


def known_share(load: RecordedLoad) -> dict[str, float]:
    """Return the share of the span that has a rate, for each topic and broker."""
    span = span_of(load)
    known: dict[str, int] = {}
    for row in load.arrivals:
        parts = row["cluster"], row["topic"], row["broker_name"]
        name = "/".join(part for part in parts if part is not None)
        known[name] = known.get(name, 0) + row["to_ms"] - row["from_ms"]
    length = 1 if span is None else span[1] - span[0]
    return {name: ms / length for name, ms in known.items()}
