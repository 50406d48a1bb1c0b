"""The brokers that producers chose and avoided, derived from recorded results of their sends."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rebalance_core.contracts import REJECTED, producers
from rebalance_core.contracts.planning import QUEUE_RATES
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.producers.answers import PARTS, TALLIES, TALLY_KEY, TallyRows, added_up
from rebalance_core.producers.client_replay import RECORDED, ClientReplay, Result, replay_client
from rebalance_core.producers.model import Variant
from rebalance_core.producers.result_rows import Row, checked_rows

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
    """Return the tables in `PARTS` for some clients.

    Args:
        clients: The rows of each client, in any order, with ``_source`` and ``_raw``.
        options: The assumptions about the producers.
        brokers: The brokers by cluster; None: unknown.
    """
    rows: dict[str, list[Row]] = {name: [] for name in PARTS if name != TALLIES.name}
    tallies = TallyRows()
    for client in clients:
        cluster = client[0]["cluster"]
        names = None if brokers is None else brokers.get(cluster, frozenset())
        good, bad = checked_rows(client, names)
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
    for isolation in replayed.isolations:
        yield {
            **who,
            **{
                name: getattr(isolation, name)
                for name in producers.BROKER_ISOLATIONS.column_names[3:]
            },
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


def recorded_answers(tallies: pa.Table) -> dict[str, pa.Table]:
    """Return ``producer_shares``; the other two tables are empty.

    Results do not show which attempts belong to the same message, nor queues.
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
