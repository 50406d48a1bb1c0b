"""What the results of some clients come to, as the same Arrow tables as those of a simulation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.producers import BROKER_ISOLATIONS, PUBLISH_CHOICES, SEND_RESULTS
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.producers.results.client import ClientReplay, Result, replay_client
from rebalance_core.producers.results.order import Row, checked_rows
from rebalance_core.producers.simulation.model import Variant
from rebalance_core.producers.simulation.parts import PARTS, TALLIES, TallyRows

CLIENT = ("cluster", "producer_group", "client_id")


@dataclass(frozen=True, slots=True)
class ResultsOptions:
    """What is assumed of the producers whose results were recorded."""

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
                "table_name": SEND_RESULTS.name,
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
            rows[PUBLISH_CHOICES.name] += _choices(who, replayed, options.slice_ms)
            rows[BROKER_ISOLATIONS.name] += _isolations(who, replayed)
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
        yield {**who, **{name: getattr(one, name) for name in BROKER_ISOLATIONS.column_names[3:]}}


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
