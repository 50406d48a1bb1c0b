"""The answers from recorded results: the share of each broker."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from rebalance_core.contracts.planning import QUEUE_RATES
from rebalance_core.contracts.producers import PRODUCER_OUTCOMES, PRODUCER_SHARES
from rebalance_core.producers.results.client import RECORDED
from rebalance_core.producers.results.order import Row
from rebalance_core.producers.simulation.parts import TALLY_KEY, added_up


def recorded_answers(tallies: pa.Table) -> dict[str, pa.Table]:
    """``producer_shares``; the other two tables are empty.

    Results say nothing of messages with their retries, nor of queues.
    """
    rows = added_up(tallies).to_pylist()
    made = {PRODUCER_OUTCOMES: [], PRODUCER_SHARES: list(_shares(rows)), QUEUE_RATES: []}
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
