"""What tasks do for an audit, each with the rows of whole groups (`routed_rows`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts import REJECTED
from rebalance_core.engine.fan_out import without_text
from rebalance_core.engine.routing import Routing
from rebalance_core.process.audit.judging_pass import AuditPart, JudgingPass
from rebalance_core.spark.engine.routed_rows import routed_tables
from rebalance_core.spark.tables.task_tables import Rows

Batches = Iterable[pa.RecordBatch]
_NO_ROWS = REJECTED.arrow_schema().empty_table()


@dataclass(frozen=True)
class AuditRouting:
    """`Routing`, and facts that name no group but may concern any.

    Attributes:
        groups: Where the rows of groups go.
    """

    groups: Routing

    @property
    def buckets(self) -> int:
        """How many there are."""
        return self.groups.buckets

    def split(self, table: str, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """As `Routing.split`. Facts on the routes of groups' pop retry topics go everywhere."""
        yield from self.groups.split(table, rows)
        if table == "observed_facts":
            of_nobody = pc.and_(
                pc.equal(rows["kind"], "MISSING_ROUTE"), rows["consumer_group"].is_null()
            )
            facts = without_text(rows).filter(of_nobody)
            yield from ((bucket, facts) for bucket in range(self.buckets) if len(facts))


@dataclass(frozen=True, slots=True)
class AuditWork:
    """Rows of the ledger; the note is an `AuditPart`.

    Attributes:
        judging: Makes and judges them.
        salt: Of the names that are written for client ids; None: these are.
    """

    judging: JudgingPass
    salt: str | None

    def __call__(self, batches: Batches) -> tuple[Rows, AuditPart]:
        """`Work` of `task_tables`."""
        part = AuditPart()
        return part.shown(self._made(batches, part), self.salt), part

    def _made(self, batches: Batches, part: AuditPart) -> Iterator[tuple[str, pa.RecordBatch]]:
        for _, tables in routed_tables(batches):
            for bad in tables.pop(REJECTED.name, _NO_ROWS).to_batches():
                yield REJECTED.name, bad
            yield from self.judging.rows(tables, part.judged)
