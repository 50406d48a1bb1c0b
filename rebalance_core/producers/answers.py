"""The results of a simulation: outcomes, shares and queue rates, from the tallies of all parts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rebalance_core.contracts import REJECTED, producers
from rebalance_core.contracts.planning import QUEUE_RATES
from rebalance_core.contracts.table import Table, columns
from rebalance_core.producers.model import ProducerGroup, ProducerModel, Variant
from rebalance_core.producers.phases import Phase, phases_of
from rebalance_core.producers.producer_run import run_producer
from rebalance_core.producers.tally import Choice, Isolation, PhaseTally, Tally

PRODUCERS_PER_PART = 64
"""The number of producers that are simulated before their rows are written."""

TALLIES = Table(
    "producer_tallies",
    "Counts of producers in one phase: in total (broker null), for a broker, or for a queue.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        producer_group STRING the producer group
        topic STRING the topic
        client_version STRING version of the client
        fault_tolerance BOOLEAN sendLatencyFaultEnable
        phase_number INT from 0
        broker_name? STRING the broker
        queue_id? INT the queue
        producers BIGINT producers counted
        sends BIGINT messages sent
        failed BIGINT messages failed
        held_back BIGINT messages held back
        waited_ms BIGINT time that sends held threads
        attempts BIGINT attempts
        stored BIGINT messages stored
        slow BIGINT slow attempts
        errors BIGINT failed attempts
        recovered BIGINT producers that chose the broker again
        avoided BIGINT attempts at an avoided broker
        recovery_ms? BIGINT the longest recovery
        from_ms? BIGINT the first result, epoch ms UTC; null of a model
        to_ms? BIGINT behind the last result
        """
    ),
)
TALLY_KEY = TALLIES.column_names[:8]
TALLY_SUMS = TALLIES.column_names[8:-3]
_EXTREMES = (("recovery_ms", "max"), ("from_ms", "min"), ("to_ms", "max"))
PARTS: dict[str, Table] = {
    table.name: table
    for table in (producers.PUBLISH_CHOICES, producers.BROKER_ISOLATIONS, TALLIES, REJECTED)
}
"""The result of a simulation task: tables, and counts that have yet to be added up."""

Row = dict[str, Any]


def simulated_parts(
    model: ProducerModel, variants: Mapping[str, Sequence[Variant]], numbers: Iterable[int]
) -> dict[str, pa.Table]:
    """Simulate some producers under every variant of their group.

    Args:
        model: The model to simulate.
        variants: The variants by group; the first is the group as it is, whose choices and
            isolations become rows.
        numbers: The numbers of the producers, below ``model.producers``.

    Returns:
        The tables in `PARTS` except ``rejected``.
    """
    rows: dict[str, list[Row]] = {
        producers.PUBLISH_CHOICES.name: [],
        producers.BROKER_ISOLATIONS.name: [],
    }
    tallies = TallyRows()
    for each in numbers:
        group, number = model.producer(each)
        for place, variant in enumerate(variants[group.name]):
            tally = run_producer(model, group, number, variant, choices=place == 0)
            if place == 0:
                rows[producers.PUBLISH_CHOICES.name] += _choices(model, group, number, tally)
                rows[producers.BROKER_ISOLATIONS.name] += _isolations(model, group, number, tally)
            for phase, counts in enumerate(tally.phases):
                tallies.add(_names(model, group, variant, phase), counts)
    made = {name: pa.Table.from_pylist(r, PARTS[name].arrow_schema()) for name, r in rows.items()}
    return made | {TALLIES.name: tallies.table()}


class TallyRows:
    """Adds up counts for each row of `TALLIES`."""

    def __init__(self) -> None:
        self._rows: dict[tuple[Any, ...], Row] = {}

    def add(self, names: tuple[Any, ...], counts: PhaseTally) -> None:
        """Add one producer's counts for one phase; ``names`` are the first six columns."""
        whole = self.row(*names, None, None)
        whole["producers"] += 1
        for name in ("sends", "failed", "held_back", "waited_ms"):
            whole[name] += getattr(counts, name)
        for name in ("attempts", "stored"):
            for queue, number in getattr(counts, name).items():
                for key in ((None, None), (queue.broker_name, None), queue[1:]):
                    self.row(*names, *key)[name] += number
        for name in ("slow", "errors"):
            for broker, number in getattr(counts, name).items():
                self.row(*names, broker, None)[name] += number
        for broker, recovery_ms in counts.recovery_ms.items():
            row = self.row(*names, broker, None)
            row["recovered"] += 1
            row["recovery_ms"] = max(row["recovery_ms"] or 0, recovery_ms)

    def row(self, *key: Any) -> Row:
        """Return the row for a key, to which counts may be added."""
        if key not in self._rows:
            names = dict(zip(TALLY_KEY, key, strict=True))
            self._rows[key] = {
                **names,
                **dict.fromkeys(TALLY_SUMS, 0),
                **{name: None for name, _ in _EXTREMES},
            }
        return self._rows[key]

    def table(self) -> pa.Table:
        """Return all rows."""
        return pa.Table.from_pylist(list(self._rows.values()), TALLIES.arrow_schema())


def added_up(tallies: pa.Table) -> pa.Table:
    """Return one row for each key in the tallies of several parts."""
    grouped = tallies.group_by(list(TALLY_KEY), use_threads=False)
    sums = [(name, "sum") for name in TALLY_SUMS]
    added = grouped.aggregate([*sums, *_EXTREMES])
    named = [*TALLY_KEY, *(f"{name}_{how}" for name, how in (*sums, *_EXTREMES))]
    return added.select(named).rename_columns(TALLIES.column_names).cast(TALLIES.arrow_schema())


def _names(
    model: ProducerModel, group: ProducerGroup, variant: Variant, phase: int
) -> tuple[Any, ...]:
    version, enabled = str(variant.version), variant.fault_tolerance
    return model.cluster, group.name, group.topic, version, enabled, phase


def _choices(
    model: ProducerModel, group: ProducerGroup, number: int, tally: Tally
) -> Iterable[Row]:
    who = _producer(model, group, number)
    for choice in tally.choices:
        yield {**who, "topic": group.topic, **choice._asdict(), **_times(model, choice)}


def _isolations(
    model: ProducerModel, group: ProducerGroup, number: int, tally: Tally
) -> Iterable[Row]:
    for isolation in tally.isolations:
        yield {
            **_producer(model, group, number),
            "broker_name": isolation.broker_name,
            **_times(model, isolation),
            "latency_ms": isolation.latency_ms,
            "reason": isolation.reason,
        }


def _producer(model: ProducerModel, group: ProducerGroup, number: int) -> Row:
    return {
        "cluster": model.cluster,
        "producer_group": group.name,
        "client_id": group.client_id(number),
    }


def answer_tables(
    model: ProducerModel, variants: Mapping[str, Sequence[Variant]], tallies: pa.Table
) -> dict[str, pa.Table]:
    """Return ``producer_outcomes``, ``producer_shares`` and ``queue_rates``.

    Rates are for the groups as they are (their first variant), over whole phases.
    """
    rows = added_up(tallies).to_pylist()
    rows.sort(key=lambda row: [(value is not None, value) for value in map(row.get, TALLY_KEY)])
    phases = phases_of(model)
    made = {
        producers.PRODUCER_OUTCOMES: list(_outcomes(model, phases, rows)),
        producers.PRODUCER_SHARES: list(_shares(model, phases, rows)),
        QUEUE_RATES: list(_rates(model, phases, variants, rows)),
    }
    return {t.name: pa.Table.from_pylist(r, t.arrow_schema()) for t, r in made.items()}


def _times(model: ProducerModel, stretch: Phase | Choice | Isolation) -> Row:
    """Return the epoch times of a stretch."""
    return {"from_ms": model.start_ms + stretch.from_ms, "to_ms": model.start_ms + stretch.to_ms}


def _named(model: ProducerModel, phase: Phase, row: Row) -> Row:
    names = {name: row[name] for name in TALLY_KEY[:5]}
    return {**names, "phase": phase.label, **_times(model, phase)}


def _outcomes(model: ProducerModel, phases: Sequence[Phase], rows: list[Row]) -> Iterator[Row]:
    busiest: dict[tuple[Any, ...], int] = {}
    for row in rows:
        if row["queue_id"] is not None:
            key = _key(row)
            busiest[key] = max(busiest.get(key, 0), row["stored"])
    queues = sum(broker.queues for broker in model.brokers)
    for row in rows:
        if row["broker_name"] is not None:
            continue
        stored, sends = row["stored"], row["sends"]
        yield {
            **_named(model, phases[row["phase_number"]], row),
            **{n: row[n] for n in ("producers", "sends", "failed", "held_back", "stored")},
            "mean_wait_ms": row["waited_ms"] / sends if sends else None,
            "peak_queue_ratio": busiest[_key(row)] * queues / stored if stored else None,
        }


def _shares(model: ProducerModel, phases: Sequence[Phase], rows: list[Row]) -> Iterator[Row]:
    by_broker = {(*_key(r), r["broker_name"]): r for r in rows if r["queue_id"] is None}
    empty = dict.fromkeys(("attempts", "slow", "errors", "recovered"), 0) | {"recovery_ms": None}
    for row in rows:
        if row["broker_name"] is not None:
            continue
        phase = phases[row["phase_number"]]
        for broker in sorted(model.brokers, key=lambda broker: broker.name):
            counts = by_broker.get((*_key(row), broker.name), empty)
            recovering = broker.name in phase.recovering
            left = row["producers"] - counts["recovered"]
            yield {
                **_named(model, phase, row),
                "broker_name": broker.name,
                **{n: counts[n] for n in ("attempts", "slow", "errors", "recovery_ms")},
                "share": counts["attempts"] / row["attempts"] if row["attempts"] else None,
                "not_recovered": left if recovering else None,
                "avoided": None,
            }


def _rates(
    model: ProducerModel,
    phases: Sequence[Phase],
    variants: Mapping[str, Sequence[Variant]],
    rows: list[Row],
) -> Iterator[Row]:
    stored: dict[tuple[str, int, str, int], int] = {}
    for row in rows:
        variant = variants[row["producer_group"]][0]
        if (row["client_version"], row["fault_tolerance"]) == (
            str(variant.version),
            variant.fault_tolerance,
        ) and row["queue_id"] is not None:
            key = (row["topic"], row["phase_number"], row["broker_name"], row["queue_id"])
            stored[key] = stored.get(key, 0) + row["stored"]
    for topic in sorted({group.topic for group in model.groups}):
        for number, phase in enumerate(phases):
            seconds = (phase.to_ms - phase.from_ms) / 1000
            for broker in sorted(model.brokers, key=lambda broker: broker.name):
                for queue_id in range(broker.queues):
                    messages = stored.get((topic, number, broker.name, queue_id), 0)
                    yield {
                        "cluster": model.cluster,
                        "topic": topic,
                        "broker_name": broker.name,
                        "queue_id": queue_id,
                        **_times(model, phase),
                        "messages_per_second": messages / seconds,
                    }


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in TALLY_KEY[:6])
