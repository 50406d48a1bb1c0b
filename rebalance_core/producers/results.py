"""What producers chose and avoided, from recorded results of their sends."""

import re
from collections import Counter as Counts
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from rebalance_core.contracts import REJECTED, producers
from rebalance_core.contracts.planning import QUEUE_RATES
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.model.times import SLOW_SEND_MS
from rebalance_core.producers import sending
from rebalance_core.producers.answers import PARTS, TALLIES, TALLY_KEY, TallyRows, added_up
from rebalance_core.producers.model import Variant
from rebalance_core.producers.routes import Counter
from rebalance_core.producers.sending import JavaFailure, Report, failure_of, verdict
from rebalance_core.producers.strategy import new_strategy, profile_of
from rebalance_core.producers.tally import Isolation, IsolationLog

# The rows of one client in order, and what is wrong with them.

Row = dict[str, Any]
Issue = dict[str, str]

UNKNOWN_BROKER = "UNKNOWN_BROKER"
TIME_WENT_BACK = "TIME_WENT_BACK"
_LINE = re.compile(r"^(.*):([0-9]+)$")
_CONTENT = ("event_ms", "topic", "broker_name", "latency_ms", "status")


def checked_rows(
    rows: Sequence[Row], brokers: Collection[str] | None
) -> tuple[list[Row], list[tuple[Row, list[Issue]]]]:
    """The good rows in order of time, and the bad ones with their issues.

    In the order of the lines of a file an event must not be earlier than one before it; rows
    without a line (Parquet) have no such order, and are sorted.

    Args:
        rows: Of one client, with ``_source``.
        brokers: Those of the cluster; null: not known.
    """
    good: list[tuple[tuple[Any, ...], Row]] = []
    bad: list[tuple[Row, list[Issue]]] = []
    latest: dict[str, int] = {}
    for file, line, row in sorted((_place(row) for row in rows), key=_file_order):
        issues = []
        if brokers is not None and row["broker_name"] not in brokers:
            known = ", ".join(sorted(brokers)) or "none"
            message = f"broker_name is '{row['broker_name']}'; brokers of cluster_events: {known}"
            issues.append({"code": UNKNOWN_BROKER, "message": message})
        if line is not None:
            before = latest.get(file, row["event_ms"])
            if row["event_ms"] < before:
                message = f"event_ms is {row['event_ms']}, before the {before} of a line above"
                issues.append({"code": TIME_WENT_BACK, "message": message})
            else:
                latest[file] = row["event_ms"]
        if issues:
            bad.append((row, issues))
        else:
            good.append(((row["event_ms"], file, line or 0, _content(row)), row))
    return [row for _, row in sorted(good, key=lambda pair: pair[0])], bad


def _place(row: Row) -> tuple[str, int | None, Row]:
    found = _LINE.match(row.get("_source") or "")
    return (found[1], int(found[2]), row) if found else ("", None, row)


def _file_order(place: tuple[str, int | None, Row]) -> tuple[str, int, tuple[Any, ...]]:
    return place[0], place[1] or 0, _content(place[2])


def _content(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _CONTENT)


# One producer's results through the fault table of its version.

RECORDED = "recorded"
_FAILURES: dict[str, JavaFailure | None] = {
    **dict.fromkeys(producers.STORED),
    producers.CONNECT_FAILED: failure_of(sending.CONNECT),
    producers.SEND_FAILED: failure_of(sending.SEND_REQUEST),
    producers.TIMEOUT: failure_of(sending.TIMEOUT),
    producers.BROKER_ERROR: JavaFailure(sending.BROKER_EXCEPTION),
    producers.NO_ADDRESS: failure_of(sending.NO_ADDRESS),
    producers.INTERRUPTED: failure_of(sending.INTERRUPTED),
}


class Result(NamedTuple):
    """One row of ``send_results`` of a client."""

    event_ms: int
    topic: str
    broker_name: str
    latency_ms: int
    status: str


@dataclass(slots=True)
class BrokerCounts:
    """Counts of one topic on one broker."""

    attempts: int = 0
    stored: int = 0
    slow: int = 0
    errors: int = 0
    avoided: int = 0


@dataclass(slots=True)
class ClientReplay:
    """The choices, counts and isolations of one client's results."""

    choices: Counts[tuple[str, str, int]] = field(default_factory=Counts)
    """attempts by topic, broker and number of the slice since the epoch"""
    counts: dict[tuple[str, str], BrokerCounts] = field(default_factory=dict)
    """by topic and broker"""
    isolations: list[Isolation] = field(default_factory=list)


def replay_client(
    results: Sequence[Result], variant: Variant, *, detector: bool, slice_ms: int
) -> ClientReplay:
    """The isolations that the results bring about, and the attempts by broker.

    An attempt is *avoided* where the fault table, as it was when the attempt began, said to choose
    another broker, and there was one that the client uses for the topic. Many of them: the client
    runs without sendLatencyFaultEnable. Sync sends are assumed (rocketmq.md §9.2). O(results).

    Args:
        results: Of one client, in order of time.
        variant: Version and setting to assume.
        detector: startDetectorEnable.
        slice_ms: Length of the stretches of ``choices``.
    """
    profile = profile_of(variant.version)
    unused = Counter(0, int, profile.raw_seed)
    strategy = new_strategy(profile, variant.fault_tolerance, unused)
    made, log = ClientReplay(), IsolationLog()
    used: dict[str, set[str]] = {}
    for result in results:
        used.setdefault(result.topic, set()).add(result.broker_name)
    for result in results:
        began_ms = result.event_ms - result.latency_ms
        failure = _FAILURES[result.status]
        isolation, reachable = verdict(failure, profile, detector=detector)
        others = used[result.topic] - {result.broker_name}
        counts = made.counts.setdefault((result.topic, result.broker_name), BrokerCounts())
        counts.attempts += 1
        counts.stored += failure is None
        counts.errors += failure is not None
        counts.slow += result.latency_ms >= SLOW_SEND_MS
        counts.avoided += log.covers(result.broker_name, began_ms) and not all(
            log.covers(other, began_ms) for other in others
        )
        stretch = (result.topic, result.broker_name, began_ms // slice_ms)
        made.choices[stretch] += 1
        report = Report(
            result.broker_name, result.latency_ms, isolation, reachable, result.event_ms
        )
        strategy.report(*report)
        log.note(report, strategy.faults)
    made.isolations = list(log.all())
    return made


# What the results of some clients come to, as the same Arrow tables as those of a simulation.

CLIENT = ("cluster", "producer_group", "client_id")


@dataclass(frozen=True, slots=True)
class ResultsOptions:
    """Assumptions about the producers whose results were recorded."""

    variant: Variant
    detector: bool = False
    slice_ms: int = 60_000


def replayed_parts(
    clients: Iterable[Sequence[Row]],
    options: ResultsOptions,
    brokers: Mapping[str, frozenset[str]] | None,
) -> dict[str, pa.Table]:
    """The tables of `PARTS` for some clients.

    Args:
        clients: The rows of each, in any order, with ``_source`` and ``_raw``.
        options: What to assume.
        brokers: Brokers by cluster; null: not known.
    """
    rows: dict[str, list[Row]] = {name: [] for name in PARTS if name != TALLIES.name}
    tallies = TallyRows()
    for client in clients:
        cluster = client[0]["cluster"]
        known = None if brokers is None else brokers.get(cluster, frozenset())
        good, bad = checked_rows(client, known)
        rows[REJECTED.name] += [
            {
                "table_name": producers.SEND_RESULTS.name,
                "source": row[SOURCE],
                "raw": row[RAW],
                "issues": issues,
            }
            for row, issues in bad
        ]
        if good:
            who = {name: client[0][name] for name in CLIENT}
            results = [Result(*(row[name] for name in Result._fields)) for row in good]
            replayed = replay_client(
                results, options.variant, detector=options.detector, slice_ms=options.slice_ms
            )
            rows[producers.PUBLISH_CHOICES.name] += _choices(who, replayed, options.slice_ms)
            rows[producers.BROKER_ISOLATIONS.name] += _isolations(who, replayed)
            _tally(tallies, who, replayed, results, options.variant)
    made = {name: pa.Table.from_pylist(r, PARTS[name].arrow_schema()) for name, r in rows.items()}
    return made | {TALLIES.name: tallies.table()}


def _choices(who: Row, replayed: ClientReplay, slice_ms: int) -> Iterator[Row]:
    for (topic, broker, stretch), sends in sorted(replayed.choices.items()):
        yield {
            **who,
            "topic": topic,
            "broker_name": broker,
            "queue_id": None,
            "from_ms": stretch * slice_ms,
            "to_ms": (stretch + 1) * slice_ms,
            "sends": sends,
        }


def _isolations(who: Row, replayed: ClientReplay) -> Iterator[Row]:
    for one in replayed.isolations:
        yield {
            **who,
            **{name: getattr(one, name) for name in producers.BROKER_ISOLATIONS.column_names[3:]},
        }


def _tally(
    tallies: TallyRows,
    who: Row,
    replayed: ClientReplay,
    results: Sequence[Result],
    variant: Variant,
) -> None:
    setting: tuple[Any, ...] = (str(variant.version), variant.fault_tolerance, 0)
    for topic in {result.topic for result in results}:
        times = [result.event_ms for result in results if result.topic == topic]
        names = (who["cluster"], who["producer_group"], topic, *setting)
        whole = tallies.row(*names, None, None)
        whole["producers"] += 1
        whole["from_ms"] = min(times[0], whole["from_ms"] or times[0])
        whole["to_ms"] = max(times[-1] + 1, whole["to_ms"] or 0)
        for (of_topic, broker), counts in replayed.counts.items():
            if of_topic == topic:
                row = tallies.row(*names, broker, None)
                for name in ("attempts", "stored", "slow", "errors", "avoided"):
                    row[name] += getattr(counts, name)
                    whole[name] += getattr(counts, name)


# The answers from recorded results: the share of each broker.


def recorded_answers(tallies: pa.Table) -> dict[str, pa.Table]:
    """``producer_shares``; the other two tables are empty.

    Results say nothing of messages with their retries, nor of queues.
    """
    rows = added_up(tallies).to_pylist()
    made = {
        producers.PRODUCER_OUTCOMES: [],
        producers.PRODUCER_SHARES: list(_shares(rows)),
        QUEUE_RATES: [],
    }
    return {t.name: pa.Table.from_pylist(r, t.arrow_schema()) for t, r in made.items()}


def _shares(rows: list[Row]) -> Iterator[Row]:
    of_all = {_key(row): row for row in rows if row["broker_name"] is None}
    of_broker = [row for row in rows if row["broker_name"] is not None]
    for row in sorted(of_broker, key=lambda row: (_key(row), row["broker_name"])):
        whole = of_all[_key(row)]
        yield {
            **{name: row[name] for name in TALLY_KEY[:5]},
            "phase": RECORDED,
            "from_ms": whole["from_ms"],
            "to_ms": whole["to_ms"],
            **{n: row[n] for n in ("broker_name", "attempts", "slow", "errors", "avoided")},
            "share": row["attempts"] / whole["attempts"],
            "recovery_ms": None,
            "not_recovered": None,
        }


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in TALLY_KEY[:5])
