"""The answers of a simulation: outcomes, shares and queue rates, from the tallies of all parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rebalance_core.contracts.planning import QUEUE_RATES
from rebalance_core.contracts.producers import PRODUCER_OUTCOMES, PRODUCER_SHARES
from rebalance_core.producers.simulation.model import ProducerModel, Variant
from rebalance_core.producers.simulation.parts import TALLY_KEY, added_up
from rebalance_core.producers.simulation.phases import Phase, phases_of

Row = dict[str, Any]
_VARIANT = TALLY_KEY[1:5]


def answer_tables(
    model: ProducerModel, variants: Mapping[str, Sequence[Variant]], tallies: pa.Table
) -> dict[str, pa.Table]:
    """``producer_outcomes``, ``producer_shares`` and ``queue_rates``.

    Rates are of the groups as they are (their first variant), over whole phases.
    """
    rows = added_up(tallies).to_pylist()
    rows.sort(key=lambda row: [(value is not None, value) for value in map(row.get, TALLY_KEY)])
    phases = phases_of(model)
    made = {
        PRODUCER_OUTCOMES: list(_outcomes(model, phases, rows)),
        PRODUCER_SHARES: list(_shares(model, phases, rows)),
        QUEUE_RATES: list(_rates(model, phases, variants, rows)),
    }
    return {t.name: pa.Table.from_pylist(r, t.arrow_schema()) for t, r in made.items()}


def _stretch(model: ProducerModel, phase: Phase) -> Row:
    return {
        "phase": phase.label,
        "from_ms": model.start_ms + phase.from_ms,
        "to_ms": model.start_ms + phase.to_ms,
    }


def _named(model: ProducerModel, phase: Phase, row: Row) -> Row:
    return {"cluster": row["cluster"], **{n: row[n] for n in _VARIANT}, **_stretch(model, phase)}


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
    there = {(*_key(r), r["broker_name"]): r for r in rows if r["queue_id"] is None}
    empty = dict.fromkeys(("attempts", "slow", "errors", "recovered"), 0) | {"recovery_ms": None}
    for row in rows:
        if row["broker_name"] is not None:
            continue
        phase = phases[row["phase_number"]]
        for broker in sorted(model.brokers, key=lambda broker: broker.name):
            one = there.get((*_key(row), broker.name), empty)
            recovering = broker.name in phase.recovering
            left = row["producers"] - one["recovered"]
            yield {
                **_named(model, phase, row),
                "broker_name": broker.name,
                **{n: one[n] for n in ("attempts", "slow", "errors", "recovery_ms")},
                "share": one["attempts"] / row["attempts"] if row["attempts"] else None,
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
        its = variants[row["producer_group"]][0]
        if (row["client_version"], row["fault_tolerance"]) == (
            str(its.version),
            its.fault_tolerance,
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
                        "from_ms": model.start_ms + phase.from_ms,
                        "to_ms": model.start_ms + phase.to_ms,
                        "messages_per_second": messages / seconds,
                    }


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in TALLY_KEY[:6])
