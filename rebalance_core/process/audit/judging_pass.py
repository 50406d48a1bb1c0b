"""One pass over whole groups: the rows of their ledger, and what is found by these and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from rebalance_core.audit.judge import GroupJudge
from rebalance_core.contracts import SIMULATED_TABLES
from rebalance_core.engine.bucket_pass import with_events
from rebalance_core.engine.fan_out import GroupedRows, fan_out
from rebalance_core.engine.ledger_pass import Rows, ledger_pass
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.process.audit.audit_part import JudgedGroups
from rebalance_core.process.audit.group_cases import by_group, case_tables, cases_of, names_of
from rebalance_core.process.audit.judges import Judged, judge_cases

ROWS_AT_ONCE = 4_000
"""Input rows of the groups that are judged together: their ledger, which may have a hundred times
as many rows, is in memory until they are."""


@dataclass(frozen=True, slots=True)
class JudgingPass:
    """Simulates and judges groups; travels to every task.

    Attributes:
        judge: of single groups.
        engine: see `EngineOptions`.
    """

    judge: GroupJudge
    engine: EngineOptions

    def rows(
        self,
        tables: Mapping[str, pa.Table],
        judged: JudgedGroups,
        progress: Callable[[int, int], object] | None = None,
    ) -> Rows:
        """Rows of every table of the ledger, with coded names (`ledger_pass`), and of `REPLAYED`.

        Memory: the tables, and the ledger of the groups that `ROWS_AT_ONCE` input rows are of.

        Args:
            tables: used rows of input tables, observed tables, findings and ``propagation`` by
                name: all that concern some groups. A table without rows may be missing.
            judged: gets what is found, as the rows are taken.
            progress: told how many groups are judged, of how many.
        """
        tables = with_events(tables)
        own, grouped = by_group(case_tables(tables)), fan_out(tables)
        place = {name: at for at, name in enumerate(names_of(own, 0, len(own)))}
        begin = 0
        for first, end in grouped.chunks(ROWS_AT_ONCE):
            ledger: dict[str, list[pa.Table]] = {}
            for name, rows in ledger_pass(grouped.of(first, end), self.engine, names_coded=True):
                if name in SIMULATED_TABLES:
                    ledger.setdefault(name, []).append(_plain(name, rows))
                yield name, rows
            after = place[names_of(grouped, end - 1, end)[0]] + 1
            judged.add(self._judged(own, begin, after, ledger))
            begin = after
            if progress is not None:
                progress(begin, len(own))
        judged.add(self._judged(own, begin, len(own), {}))

    def _judged(
        self, own: GroupedRows, begin: int, end: int, ledger: dict[str, list[pa.Table]]
    ) -> Judged:
        """What is found of a range of groups; those without a consumer event have no ledger.

        ``ledger`` is emptied: its rows are there as cases from here on.
        """
        if begin == end:
            return {}
        tables = own.of(begin, end)
        tables |= {name: pa.concat_tables(ledger.pop(name)) for name in [*ledger]}
        grouped = by_group(tables)
        del tables
        return judge_cases(self.judge, cases_of(grouped))


def _plain(table: str, rows: pa.RecordBatch) -> pa.Table:
    """The rows with names as texts."""
    return pa.Table.from_batches([rows]).cast(SIMULATED_TABLES[table].arrow_schema())
