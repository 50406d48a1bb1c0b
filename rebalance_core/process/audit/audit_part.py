"""What an audit notes of some groups while their ledger goes by; parts are merged."""

from __future__ import annotations

import pyarrow as pa

from rebalance_core.checks.packed_rows import pack, unpack
from rebalance_core.contracts import AUDITED_TABLES, LEDGER_TABLES
from rebalance_core.contracts.table import batch_of_rows, rows_of_arrow
from rebalance_core.engine.facts import LedgerFacts
from rebalance_core.engine.ledger_pass import Rows
from rebalance_core.process.audit.audit_result import Row
from rebalance_core.process.audit.judges import JUDGED, Judged
from rebalance_core.process.audit.redacted_tables import redacted


class JudgedGroups:
    """Findings and verdicts on groups, packed."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[bytes]] = {name: [] for name in JUDGED}

    def add(self, judged: Judged) -> None:
        """Those of some more groups."""
        for name, rows in judged.items():
            if rows:
                batch = batch_of_rows(AUDITED_TABLES[name], rows)
                self._chunks[name].append(pack(pa.Table.from_batches([batch])))

    def merge(self, other: JudgedGroups) -> None:
        """Those of groups that were judged elsewhere."""
        for name, chunks in other._chunks.items():
            self._chunks[name] += chunks

    def rows(self) -> dict[str, list[Row]]:
        """Those of all groups."""
        return {
            name: [row for chunk in chunks for row in rows_of_arrow(unpack(chunk))]
            for name, chunks in self._chunks.items()
        }


class AuditPart:
    """What is told of some groups beside the rows of their ledger."""

    def __init__(self) -> None:
        self.facts = LedgerFacts()
        self.judged = JudgedGroups()

    def merge(self, other: AuditPart) -> None:
        """Add what is told of other groups."""
        self.facts.merge(other.facts)
        self.judged.merge(other.judged)

    def shown(self, made: Rows, salt: str | None) -> Rows:
        """The rows of the ledger as they are written; all that go by are counted.

        Args:
            made: rows of the ledger and of `REPLAYED`.
            salt: of the names that are written for client ids; None: these are.
        """
        for name, rows in made:
            self.facts.add(name, rows)
            if name in LEDGER_TABLES:
                yield name, rows if salt is None else redacted(rows, salt)
